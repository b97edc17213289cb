// C++ names: mangled names are demangled, all others are unchanged.
#include <doctest/doctest.h>

#include "store/demangled_name.h"

using collector::store::demangled_name;

TEST_CASE("mangled names become what was written") {
  CHECK(demangled_name("_Z3addIfEvPT_i") == "void add<float>(float*, int)");
}

TEST_CASE("what is not mangled stays") {
  CHECK(demangled_name("add").compare("add") == 0);
  CHECK(demangled_name("_Z").compare("_Z") == 0);
  CHECK(demangled_name("").empty());
}
