// Names of API calls: one for each function, and its number if the library has no name for it.
#include <doctest/doctest.h>

#include "capture/api_call_names.h"

using collector::capture::intern_api_call_names;
using collector::cupti::Library;
using collector::store::ApiCallRow;
using collector::store::Store;

TEST_CASE("a function without a name is called by its number, once") {
  const auto library = Library::layouts_only(13000);  // knows no names
  Store store;
  for (const uint32_t callback_id : {7u, 9u, 7u}) {
    ApiCallRow& call = store.append<ApiCallRow>() = {};
    call.domain = 2;
    call.callback_id = callback_id;
  }
  const auto names = intern_api_call_names(*library, store.rows.of<ApiCallRow>(), store.strings);
  REQUIRE(names.size() == 2);
  CHECK(store.strings.texts()[names.at({2, 7})] == "callback 7");
  CHECK(store.strings.texts()[names.at({2, 9})] == "callback 9");
}
