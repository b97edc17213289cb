// The grammar of `timeline_label` as it is written; labels.h reads it. The same as collector/stepstats/labels.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collector::convert {

// "cudaLaunchKernel = cudaLaunchKernel()"
template <typename Sink>
void PutCallLabel(Sink& sink, std::string_view name) {
  const size_t end = name.find_last_not_of('/');
  const std::string_view stripped = end == std::string_view::npos ? std::string_view() : name.substr(0, end + 1);
  const size_t slash = stripped.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? stripped : stripped.substr(slash + 1);
  sink.Raw(name);
  sink.Raw(" = ");
  sink.Raw(last.empty() ? name : last);
  sink.Raw("()");
}

// "void add<float>(float*) regs:64 shm:0 grid:8,1,1 block:256,1,1"
struct KernelLabel {
  std::string_view whole_name;
  int64_t registers;
  int64_t shared_bytes;
  std::array<int64_t, 6> shape;  // grid and block

  template <typename Sink>
  void Put(Sink& sink) const {
    sink.Raw(whole_name);
    sink.Raw(" regs:");
    sink.Decimal(registers);
    sink.Raw(" shm:");
    sink.Decimal(shared_bytes);
    sink.Raw(" grid:");
    PutTriple(sink, 0);
    sink.Raw(" block:");
    PutTriple(sink, 3);
  }

 private:
  template <typename Sink>
  void PutTriple(Sink& sink, size_t first) const {
    sink.Decimal(shape[first]);
    sink.Char(',');
    sink.Decimal(shape[first + 1]);
    sink.Char(',');
    sink.Decimal(shape[first + 2]);
  }
};

// " 4096 bytes"; nothing for an unknown size, which CUPTI gives as 0.
template <typename Sink>
void PutSize(Sink& sink, int64_t num_bytes) {
  if (num_bytes == 0) return;
  sink.Char(' ');
  sink.Unsigned(static_cast<uint64_t>(num_bytes));
  sink.Raw(" bytes");
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
  void Put(Sink& sink) const {
    sink.Raw("MEMCPY");
    sink.Raw(kind);
    PutSize(sink, num_bytes);
    sink.Raw(" (");
    sink.Raw(from);
    sink.Raw(" to ");
    sink.Raw(to);
    sink.Char(')');
    if (kind != "PtoP") return;
    sink.Raw(" gpu:");
    sink.Decimal(src_device);
    sink.Raw(" to gpu:");
    sink.Decimal(dst_device);
  }
};

// "MEMSET 4096 bytes (Device)"
struct MemsetLabel {
  int64_t num_bytes;
  std::string_view kind;

  template <typename Sink>
  void Put(Sink& sink) const {
    sink.Raw("MEMSET");
    PutSize(sink, num_bytes);
    sink.Raw(" (");
    sink.Raw(kind);
    sink.Char(')');
  }
};

}  // namespace collector::convert
