// The heads of RunMetadata's fields: their lengths are those of what follows them.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "stepstats/run_metadata.h"
#include "stepstats/wire.h"
#include "stepstats/wire_sink.h"

using namespace collector::stepstats;

namespace {

std::string message_of(const std::string& step, const std::string& provenance, const std::string& capture,
                       const std::string& rows) {
  Measure heads;
  put_step_head(heads, step.size());
  put_capture_head(heads, provenance, capture, rows.size());
  std::string bytes(heads.num_bytes() + step.size() + rows.size(), '?');
  WireWriter writer(bytes.data());
  put_step_head(writer, step.size());
  writer.put_raw(step);
  put_capture_head(writer, provenance, capture, rows.size());
  writer.put_raw(rows);
  CHECK(writer.to() == bytes.data() + bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("the fields around a step hold what was written into them") {
  for (const size_t size : {size_t{1}, size_t{127}, size_t{128}, size_t{70000}}) {
    CAPTURE(size);
    const std::string step(size, 's');
    const std::string bytes = message_of(step, "provenance", "capture", "rows");
    WireReader reader(bytes, bytes);
    CHECK(reader.read_varint() == make_tag(kRunMetadataStep, kBytes));
    CHECK(reader.read_bytes() == step);
    CHECK(reader.read_varint() == make_tag(kRunMetadataProvenance, kBytes));
    CHECK(reader.read_bytes() == "provenance");
    CHECK(reader.read_varint() == make_tag(kRunMetadataCapture, kBytes));
    CHECK(reader.read_bytes() == "capturerows");
    CHECK(reader.at_end());
  }
}

TEST_CASE("a step without devices has no field") {
  const std::string bytes = message_of("", "p", "", "");
  WireReader reader(bytes, bytes);
  CHECK(reader.read_varint() == make_tag(kRunMetadataProvenance, kBytes));
}
