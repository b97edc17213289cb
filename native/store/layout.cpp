#include "store/layout.h"

namespace collector::store {
namespace {

// What rows have that are on a stream.
template <typename Row>
Layout<Row> on_a_stream() {
  return Layout<Row>()
      .column("start_ns", &Row::start_ns)
      .column("end_ns", &Row::end_ns)
      .column("correlation_id", &Row::correlation_id)
      .column("graph_id", &Row::graph_id)
      .column("graph_node_id", &Row::graph_node_id);
}

}  // namespace

template <>
const std::vector<Column>& columns_of<KernelRow>() {
  using Row = KernelRow;
  static const auto layout = on_a_stream<Row>()
                                 .column("name_id", &Row::name_id)
                                 .column("grid_x", &Row::grid_x)
                                 .column("grid_y", &Row::grid_y)
                                 .column("grid_z", &Row::grid_z)
                                 .column("block_x", &Row::block_x)
                                 .column("block_y", &Row::block_y)
                                 .column("block_z", &Row::block_z)
                                 .column("cluster_x", &Row::cluster_x)
                                 .column("cluster_y", &Row::cluster_y)
                                 .column("cluster_z", &Row::cluster_z)
                                 .column("registers_per_thread", &Row::registers_per_thread)
                                 .column("static_shared_bytes", &Row::static_shared_bytes)
                                 .column("dynamic_shared_bytes", &Row::dynamic_shared_bytes)
                                 .column("local_bytes_per_thread", &Row::local_bytes_per_thread)
                                 .column("launch_type", &Row::launch_type);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<MemcpyRow>() {
  using Row = MemcpyRow;
  static const auto layout = on_a_stream<Row>()
                                 .column("num_bytes", &Row::num_bytes)
                                 .column("copy_kind", &Row::copy_kind)
                                 .column("src_kind", &Row::src_kind)
                                 .column("dst_kind", &Row::dst_kind)
                                 .column("is_async", &Row::is_async)
                                 .column("src_device_id", &Row::src_device_id)
                                 .column("src_context_id", &Row::src_context_id)
                                 .column("dst_device_id", &Row::dst_device_id)
                                 .column("dst_context_id", &Row::dst_context_id);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<MemsetRow>() {
  using Row = MemsetRow;
  static const auto layout = on_a_stream<Row>()
                                 .column("num_bytes", &Row::num_bytes)
                                 .column("value", &Row::value)
                                 .column("memory_kind", &Row::memory_kind)
                                 .column("is_async", &Row::is_async);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<ApiCallRow>() {
  using Row = ApiCallRow;
  static const auto layout = Layout<Row>()
                                 .column("start_ns", &Row::start_ns)
                                 .column("end_ns", &Row::end_ns)
                                 .column("domain", &Row::domain)
                                 .column("callback_id", &Row::callback_id)
                                 .column("process_id", &Row::process_id)
                                 .column("thread_id", &Row::thread_id)
                                 .column("correlation_id", &Row::correlation_id)
                                 .column("return_value", &Row::return_value);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<ExternalCorrelationRow>() {
  using Row = ExternalCorrelationRow;
  static const auto layout = Layout<Row>()
                                 .column("correlation_id", &Row::correlation_id)
                                 .column("external_id", &Row::external_id)
                                 .column("external_kind", &Row::external_kind);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<SynchronizationRow>() {
  using Row = SynchronizationRow;
  static const auto layout = Layout<Row>()
                                 .column("start_ns", &Row::start_ns)
                                 .column("end_ns", &Row::end_ns)
                                 .column("sync_type", &Row::sync_type)
                                 .column("context_id", &Row::context_id)
                                 .column("stream_id", &Row::stream_id)
                                 .column("correlation_id", &Row::correlation_id)
                                 .column("event_id", &Row::event_id)
                                 .column("return_value", &Row::return_value);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<OverheadRow>() {
  using Row = OverheadRow;
  static const auto layout = Layout<Row>()
                                 .column("start_ns", &Row::start_ns)
                                 .column("end_ns", &Row::end_ns)
                                 .column("overhead_kind", &Row::overhead_kind)
                                 .column("object_kind", &Row::object_kind)
                                 .column("process_id", &Row::process_id)
                                 .column("thread_id", &Row::thread_id)
                                 .column("device_id", &Row::device_id)
                                 .column("context_id", &Row::context_id)
                                 .column("stream_id", &Row::stream_id)
                                 .column("correlation_id", &Row::correlation_id);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<MemoryOperationRow>() {
  using Row = MemoryOperationRow;
  static const auto layout = Layout<Row>()
                                 .column("start_ns", &Row::start_ns)
                                 .column("operation", &Row::operation)
                                 .column("memory_kind", &Row::memory_kind)
                                 .column("address", &Row::address)
                                 .column("num_bytes", &Row::num_bytes)
                                 .column("device_id", &Row::device_id)
                                 .column("context_id", &Row::context_id)
                                 .column("stream_id", &Row::stream_id)
                                 .column("correlation_id", &Row::correlation_id)
                                 .column("name_id", &Row::name_id)
                                 .column("is_async", &Row::is_async)
                                 .column("pool_type", &Row::pool_type)
                                 .column("pool_address", &Row::pool_address)
                                 .column("pool_bytes", &Row::pool_bytes)
                                 .column("pool_used_bytes", &Row::pool_used_bytes);
  return layout.columns();
}

template <>
const std::vector<Column>& columns_of<AnnotationRow>() {
  using Row = AnnotationRow;
  static const auto layout = Layout<Row>()
                                 .column("start_ns", &Row::start_ns)
                                 .column("end_ns", &Row::end_ns)
                                 .column("external_id", &Row::external_id)
                                 .column("name_id", &Row::path_id)
                                 .column("thread_id", &Row::thread_id)
                                 .column("depth", &Row::depth)
                                 .column("details_id", &Row::details_id);
  return layout.columns();
}

}  // namespace collector::store
