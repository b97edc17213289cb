#include "stepstats/activity_encoder.h"

#include <utility>

#include "kinds/generated/activities.h"
#include "stepstats/wire_sink.h"

namespace collector::stepstats {
namespace {

std::string encoded_varint(uint64_t value) {
  char bytes[10];
  return {bytes, write_varint(value, bytes)};
}

}  // namespace

ActivityEncoder::ActivityEncoder(const RecordedTable& table) {
  const auto tag_of = [](uint32_t number) { return encoded_varint(make_tag(number, kVarint)); };
  std::string constant = tag_of(static_cast<uint32_t>(ActivityField::kKind)) + encoded_varint(table.kind);
  size_t constant_bytes = 0;
  for (const RecordedTable::Field& field : table.fields) {
    if (table.num_rows == 0) break;
    if (!field.column.is_constant(table.num_rows)) {
      constant_bytes += constant.size();
      parts_.push_back({std::exchange(constant, {}), tag_of(field.number), field.column});
    } else if (const int64_t value = field.column[0]; value != 0) {
      constant += tag_of(field.number) + encoded_varint(static_cast<uint64_t>(value));
    }
  }
  behind_ = std::move(constant);
  constant_bytes += behind_.size();
  num_bytes_.assign(table.num_rows, static_cast<uint32_t>(constant_bytes));
  for (const Part& part : parts_) {
    uint32_t* num_bytes = num_bytes_.data();
    part.column.for_each(0, table.num_rows, [&num_bytes, tag_bytes = part.tag.size()](int64_t value) {
      const size_t own_bytes = tag_bytes + varint_bytes(static_cast<uint64_t>(value));
      *num_bytes++ += value == 0 ? 0 : static_cast<uint32_t>(own_bytes);
    });
  }
}

char* ActivityEncoder::write(size_t row, char* to) const {
  WireWriter writer(to);
  for (const Part& part : parts_) {
    writer.put_raw(part.before);
    const int64_t value = part.column[row];
    if (value == 0) continue;
    writer.put_raw(part.tag);
    writer.put_varint(static_cast<uint64_t>(value));
  }
  writer.put_raw(behind_);
  return writer.to();
}

}  // namespace collector::stepstats
