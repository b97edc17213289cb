// Outputs into Python: a str, or a callable that takes the bytes.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "bindings/gil.h"
#include "bindings/python_call.h"
#include "write/huge_pages.h"
#include "write/output.h"

namespace collector::bindings {

// Builds a str of ASCII text in place, so that the text is not copied. For use without the GIL.
class StringOutput : public write::Output {
 public:
  // `expected_bytes`: the approximate length of the text.
  explicit StringOutput(size_t expected_bytes) : first_bytes_(std::max(expected_bytes, kFewestBytes)) {}
  // The destructor frees a str, which runs no Python code.
  ~StringOutput() override {  // NOLINT(bugprone-exception-escape)
    if (text_ == nullptr) return;
    const GilAcquire gil;
    Py_DECREF(text_);
  }

  // Returns the text so far; may be called once. Needs the GIL.
  pybind11::str take() {
    resize(static_cast<Py_ssize_t>(next_ - begin_));
    return pybind11::reinterpret_steal<pybind11::str>(std::exchange(text_, nullptr));
  }

 protected:
  void make_room(size_t num_bytes) override {
    const auto used = static_cast<size_t>(next_ - begin_);
    const size_t wanted = whole_pages(std::max(used + num_bytes, std::max(used + used / 2, first_bytes_)));
    const GilAcquire gil;
    resize(static_cast<Py_ssize_t>(wanted));
    next_ = begin_ + used;
    limit_ = begin_ + wanted;
  }

 private:
  static constexpr size_t kFewestBytes = size_t{1} << 16;

  // A large block of memory has its own pages. If its size is a whole number of huge pages, Linux aligns it to a huge
  // page, so that no small pages are needed at its ends. The bytes before the text belong to the headers of Python and
  // malloc.
  static size_t whole_pages(size_t length) {
    constexpr size_t kBeforeText = 1024;
    if (length < write::kHugePageBytes) return length;
    return (length + kBeforeText + write::kHugePageBytes - 1) / write::kHugePageBytes * write::kHugePageBytes -
           kBeforeText;
  }

  void resize(Py_ssize_t length) {
    constexpr Py_UCS4 kLargestAscii = 127;
    if (text_ == nullptr) {
      text_ = PyUnicode_New(length, kLargestAscii);
      if (text_ == nullptr) throw pybind11::error_already_set();
    } else if (PyUnicode_Resize(&text_, length) != 0) {  // large strings are moved by page tables, not copied
      throw pybind11::error_already_set();
    }
    begin_ = static_cast<char*>(PyUnicode_DATA(text_));
    write::ask_for_huge_pages(begin_, static_cast<size_t>(length));
  }

  size_t first_bytes_;
  PyObject* text_ = nullptr;
  char* begin_ = nullptr;
};

// Passes the bytes to a callable piece by piece, as a memoryview that is valid only during the call. For use without
// the GIL.
class CallableOutput : public write::Output {
 public:
  explicit CallableOutput(pybind11::function write) : write_(std::move(write)) { allocate(kPieceBytes); }

  // Passes on the remaining bytes.
  void flush() {
    if (next_ == piece_.get()) return;
    const GilAcquire gil;
    auto view = pybind11::memoryview::from_memory(piece_.get(), next_ - piece_.get());
    call_python(write_, view);
    view.attr("release")();
    next_ = piece_.get();
  }

 protected:
  void make_room(size_t num_bytes) override {
    flush();
    if (num_bytes > piece_bytes_) allocate(num_bytes);
  }

 private:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  void allocate(size_t num_bytes) {
    piece_ = std::make_unique<char[]>(num_bytes);
    piece_bytes_ = num_bytes;
    next_ = piece_.get();
    limit_ = next_ + num_bytes;
  }

  pybind11::function write_;
  std::unique_ptr<char[]> piece_;
  size_t piece_bytes_ = 0;
};

}  // namespace collector::bindings
