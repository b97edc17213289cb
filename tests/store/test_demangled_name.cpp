// C++ names: mangled names are demangled, all others are unchanged.
#include <doctest/doctest.h>

#include <string>

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

TEST_CASE("the name of a type is no name of a kernel") { CHECK(demangled_name("i") == "i"); }

TEST_CASE("a name that refers to parts of itself again and again stays mangled where it would become huge") {
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto nested = [&digits](int depth) {
    std::string name = "_Z1f1bI";
    for (int i = 1; i < depth; ++i) name += "S_I";
    name += "1a";
    for (int i = 0; i < depth; ++i) name += std::string("S") + digits[i] + "_E";
    return name;
  };
  CHECK(demangled_name(nested(8)).size() > 8 * nested(8).size());
  for (const int depth : {12, 30, 34}) CHECK(demangled_name(nested(depth)) == nested(depth));
}

TEST_CASE("long names of real code are written out") {
  std::string name = "_Z1f";
  for (int i = 0; i < 500; ++i) name += "Ss";
  CHECK(demangled_name(name).size() > 500 * 11);
  CHECK(demangled_name(name).compare(0, 26, "f(std::string, std::string") == 0);
}
