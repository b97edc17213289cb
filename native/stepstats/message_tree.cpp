#include "stepstats/message_tree.h"

#include "stepstats/wire_sink.h"

namespace collector::stepstats {
namespace {

template <typename Sink>
void put_fields(Sink& sink, const MessageTree& tree, size_t row) {
  for (const MessageTree::Numbers& column : tree.numbers) put_number(sink, column.field, column.values[row]);
  for (const MessageTree::Texts& column : tree.texts) put_text(sink, column.field, column.values[row]);
  sink.put_raw(tree.encoded[row]);
}

// The size in bytes of each message, including the messages below it.
std::vector<size_t> message_sizes(const MessageTree& tree) {
  const size_t tag_bytes = varint_bytes(make_tag(tree.children_field, kBytes));
  std::vector<size_t> sizes(tree.num_rows);
  std::vector<size_t> below;  // by depth: total bytes of the messages whose parent is not reached yet
  for (size_t row = tree.num_rows; row-- > 0;) {
    const auto depth = static_cast<size_t>(tree.depths[row]);
    if (below.size() < depth + 2) below.resize(depth + 2);
    Measure own;
    put_fields(own, tree, row);
    sizes[row] = own.num_bytes() + below[depth + 1];
    below[depth + 1] = 0;
    below[depth] += tag_bytes + varint_bytes(sizes[row]) + sizes[row];
  }
  return sizes;
}

}  // namespace

bool is_tree(const MessageTree& tree) {
  for (size_t row = 0; row < tree.num_rows; ++row) {
    const int64_t highest = row == 0 ? 0 : tree.depths[row - 1] + 1;
    if (tree.depths[row] < (row == 0 ? 0 : 1) || tree.depths[row] > highest) return false;
  }
  return tree.num_rows > 0;
}

std::string encode_message_tree(const MessageTree& tree) {
  const std::vector<size_t> sizes = message_sizes(tree);
  std::string bytes(sizes[0], '\0');
  WireWriter writer(bytes.data());
  for (size_t row = 0; row < tree.num_rows; ++row) {
    if (row > 0) {
      writer.put_varint(make_tag(tree.children_field, kBytes));
      writer.put_varint(sizes[row]);
    }
    put_fields(writer, tree, row);
  }
  return bytes;
}

}  // namespace collector::stepstats
