# Compiles with zig's C++ compiler, which carries the symbol versions of old C libraries and a C++ library of its own, so
# that a wheel runs on every Linux with that C library or a newer one. COLLECTOR_ZIG_WRAPPERS is the folder of programs that
# call zig, and COLLECTOR_ZIG_TARGET its target, for example x86_64-linux-gnu.2.17; scripts/build_wheels.py sets both.
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "$ENV{COLLECTOR_ZIG_TARGET}")
set(COLLECTOR_ZIG_WRAPPERS "$ENV{COLLECTOR_ZIG_WRAPPERS}")
set(CMAKE_CXX_COMPILER "${COLLECTOR_ZIG_WRAPPERS}/zig-c++")
set(CMAKE_AR "${COLLECTOR_ZIG_WRAPPERS}/zig-ar" CACHE FILEPATH "" FORCE)
set(CMAKE_RANLIB "${COLLECTOR_ZIG_WRAPPERS}/zig-ranlib" CACHE FILEPATH "" FORCE)
# The linker strips: the host's `strip` knows no other architecture. Paths of the build stay out of the libraries.
set(CMAKE_STRIP "/bin/true" CACHE FILEPATH "" FORCE)
set(CMAKE_CXX_FLAGS_INIT "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")
# The unwinder of the system instead of zig's own: when Python ends while a thread is in our code, glibc unwinds its frames
# with libgcc_s, whose state no other unwinder understands.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s $ENV{COLLECTOR_LIBGCC}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s $ENV{COLLECTOR_LIBGCC}")
