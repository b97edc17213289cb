// Writes the grammar of `timeline_label`, which labels.h reads. collector/stepstats/labels.py writes the same labels of
// calls, copies, memsets and annotations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collector::stepstats {

// "cudaLaunchKernel = cudaLaunchKernel()"
template <typename Sink>
void put_call_label(Sink& sink, std::string_view name) {
  const size_t end = name.find_last_not_of('/');
  const std::string_view stripped = end == std::string_view::npos ? std::string_view() : name.substr(0, end + 1);
  const size_t slash = stripped.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? stripped : stripped.substr(slash + 1);
  sink.put_raw(name);
  sink.put_raw(" = ");
  sink.put_raw(last.empty() ? name : last);
  sink.put_raw("()");
}

// "void add<float>(float*) regs:64 shm:0 grid:8,1,1 block:256,1,1", or the name alone where no launch shape is known.
struct KernelLabel {
  std::string_view whole_name;
  int64_t registers;
  int64_t shared_bytes;
  std::array<int64_t, 6> shape;  // grid and block

  template <typename Sink>
  void put(Sink& sink) const {
    sink.put_raw(whole_name);
    if (registers == 0 && shape == decltype(shape){}) return;
    sink.put_raw(" regs:");
    sink.put_decimal(registers);
    sink.put_raw(" shm:");
    sink.put_decimal(shared_bytes);
    sink.put_raw(" grid:");
    put_triple(sink, 0);
    sink.put_raw(" block:");
    put_triple(sink, 3);
  }

 private:
  template <typename Sink>
  void put_triple(Sink& sink, size_t first) const {
    sink.put_decimal(shape[first]);
    sink.put_char(',');
    sink.put_decimal(shape[first + 1]);
    sink.put_char(',');
    sink.put_decimal(shape[first + 2]);
  }
};

// " 4096 bytes", or nothing for an unknown size, which CUPTI reports as 0.
template <typename Sink>
void put_size(Sink& sink, int64_t num_bytes) {
  if (num_bytes == 0) return;
  sink.put_char(' ');
  sink.put_unsigned(static_cast<uint64_t>(num_bytes));
  sink.put_raw(" bytes");
}

// "MEMCPYPtoP 4096 bytes (Device to Device) gpu:0 to gpu:1"
struct CopyLabel {
  std::string_view kind;
  int64_t num_bytes;
  std::string_view from;
  std::string_view to;
  int64_t src_device;
  int64_t dst_device;

  template <typename Sink>
  void put(Sink& sink) const {
    sink.put_raw("MEMCPY");
    sink.put_raw(kind);
    put_size(sink, num_bytes);
    sink.put_raw(" (");
    sink.put_raw(from);
    sink.put_raw(" to ");
    sink.put_raw(to);
    sink.put_char(')');
    if (kind != "PtoP") return;
    sink.put_raw(" gpu:");
    sink.put_decimal(src_device);
    sink.put_raw(" to gpu:");
    sink.put_decimal(dst_device);
  }
};

// "MEMSET 4096 bytes (Device)"
struct MemsetLabel {
  int64_t num_bytes;
  std::string_view kind;

  template <typename Sink>
  void put(Sink& sink) const {
    sink.put_raw("MEMSET");
    put_size(sink, num_bytes);
    sink.put_raw(" (");
    sink.put_raw(kind);
    sink.put_char(')');
  }
};

}  // namespace collector::stepstats
