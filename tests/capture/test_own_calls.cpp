// The collector's own calls are removed from the store with their dependent rows; the program's stay.
#include <doctest/doctest.h>

#include "capture/own_calls.h"

using collector::capture::remove_own_calls;
using collector::store::ApiCallRow;
using collector::store::ExternalCorrelationRow;
using collector::store::Store;
using collector::store::SynchronizationRow;

namespace {

void add_call(Store& store, uint32_t thread_id, int64_t start_ns, uint32_t correlation_id) {
  ApiCallRow& call = store.append<ApiCallRow>() = {};
  call.thread_id = thread_id;
  call.start_ns = start_ns;
  call.correlation_id = correlation_id;
  ExternalCorrelationRow& external = store.append<ExternalCorrelationRow>() = {};
  external.correlation_id = correlation_id;
  SynchronizationRow& wait = store.append<SynchronizationRow>() = {};
  wait.correlation_id = correlation_id;
}

}  // namespace

TEST_CASE("only calls of the thread from the time on are the collector's") {
  Store store;
  add_call(store, 1, 99, 10);   // the program's, in the same thread
  add_call(store, 1, 100, 11);  // the collector's
  add_call(store, 2, 100, 12);  // the program's, in another thread
  add_call(store, 1, 101, 13);  // the collector's
  remove_own_calls(store, {1, 100});
  const auto& calls = store.rows.of<ApiCallRow>();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].correlation_id == 10);
  CHECK(calls[1].correlation_id == 12);
  REQUIRE(store.rows.of<ExternalCorrelationRow>().size() == 2);
  CHECK(store.rows.of<ExternalCorrelationRow>()[1].correlation_id == 12);
  REQUIRE(store.rows.of<SynchronizationRow>().size() == 2);
  CHECK(store.rows.of<SynchronizationRow>()[0].correlation_id == 10);
}
