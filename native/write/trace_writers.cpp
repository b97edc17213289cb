#include "write/trace_writers.h"

#include <algorithm>
#include <array>

#include "write/chrome_writer.h"
#include "write/perfetto_writer.h"

namespace collector::write {
namespace {

struct Kind {
  std::string_view name;
  std::unique_ptr<TraceWriter> (*make)(Output& output);
};

template <typename Writer>
std::unique_ptr<TraceWriter> make(Output& output) {
  return std::make_unique<Writer>(output);
}

constexpr std::array kKinds = {
    Kind{"chrome", &make<ChromeWriter>},
    Kind{"perfetto", &make<PerfettoWriter>},
};

}  // namespace

std::vector<std::string_view> trace_writer_names() {
  std::vector<std::string_view> names;
  names.reserve(kKinds.size());
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

std::unique_ptr<TraceWriter> make_trace_writer(std::string_view name, Output& output) {
  const auto* const kind =
      std::find_if(kKinds.begin(), kKinds.end(), [name](const Kind& each) { return each.name == name; });
  return kind == kKinds.end() ? nullptr : kind->make(output);
}

}  // namespace collector::write
