# Debian's cross compiler for aarch64. scripts/try_aarch64.py names the suffix of the modules: without it they would get the
# suffix of the building Python.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_STRIP aarch64-linux-gnu-strip CACHE FILEPATH "" FORCE)
