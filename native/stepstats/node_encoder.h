// Many NodeExecStats at once, as the wire bytes that protobuf itself would write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collector::convert {

// One field of all nodes.
struct NodeColumn {
  uint32_t field;
  const int64_t* values;  // the field's value in each row; of a column of texts, the place of the row's in `texts`
  std::vector<std::string> texts;
  bool is_text;
};

class NodeEncoder {
 public:
  // Columns in the order of their field numbers. All, and `rows`, outlive the encoder; places in `texts` were checked.
  NodeEncoder(const std::vector<NodeColumn>& columns, const int64_t* rows, size_t num_rows);

  // Bytes that `Write` writes.
  size_t num_bytes() const { return num_bytes_; }

  // Each row's node as an element of DeviceStepStats.node_stats. A field that holds 0 or "" is left out, as proto3
  // does.
  char* Write(char* to) const;

 private:
  struct Column {
    std::string tag;
    const int64_t* values;
    std::vector<std::string> encoded;  // of a column of texts: tag, length and text; empty for ""
    bool is_text;
  };

  size_t BodyBytes(int64_t row) const;
  char* WriteBody(int64_t row, char* to) const;

  std::vector<Column> columns_;
  const int64_t* rows_;
  std::vector<uint32_t> body_bytes_;
  size_t num_bytes_ = 0;
};

}  // namespace collector::convert
