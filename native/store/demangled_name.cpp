#include "store/demangled_name.h"

#include <cxxabi.h>

#include <csetjmp>
#include <cstdlib>
#include <memory>
#include <new>

// GNU's demangler, without an allocation of its own: it hands over a name in pieces. libstdc++.so does not export it;
// builds link cp-demangle.o of libstdc++.a where there is one.
// NOLINTNEXTLINE(readability-identifier-naming): GNU's name
extern "C" int __gcclibcxx_demangle_callback(const char* mangled, void (*take)(const char*, size_t, void*), void* into)
    __attribute__((weak));

namespace collector::store {
namespace {

enum Outcome : int { kDone, kNotMangled, kTooLong, kNoMemory };

struct Demangling {
  size_t most;
  std::string text;
  std::jmp_buf give_up;
};

// The demangler is C code, which cannot be left by an exception. It holds nothing that would have to be released.
void take_piece(const char* piece, size_t size, void* into) {
  auto& demangling = *static_cast<Demangling*>(into);
  Outcome outcome = demangling.text.size() + size > demangling.most ? kTooLong : kDone;
  try {
    if (outcome == kDone) demangling.text.append(piece, size);
  } catch (const std::bad_alloc&) {
    outcome = kNoMemory;
  }
  if (outcome != kDone) std::longjmp(demangling.give_up, outcome);
}

// Calls no function that returns after the jump but the demangler.
int demangle(const char* name, Demangling& demangling) {
  const int given_up = setjmp(demangling.give_up);
  if (given_up != 0) return given_up;
  return __gcclibcxx_demangle_callback(name, take_piece, &demangling) == 0 ? kDone : kNotMangled;
}

}  // namespace

std::string demangled_name(const std::string& name) {
  if (name.compare(0, 2, "_Z") != 0) return name;  // GNU's demangler would take it for the name of a type
  const size_t most = kMostDemangledBytes + kMostDemangledBytesPerByte * name.size();
  if (__gcclibcxx_demangle_callback != nullptr) {
    Demangling demangling{most, {}, {}};
    const int outcome = demangle(name.c_str(), demangling);
    if (outcome == kNoMemory) throw std::bad_alloc();
    return outcome == kDone ? demangling.text : name;
  }
  int status = 0;
  size_t size = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, &size, &status),
                                                    std::free);
  return status == 0 && text && size <= most ? text.get() : name;
}

}  // namespace collector::store
