#include "bindings/read_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/gil.h"
#include "bindings/shown_text.h"
#include "read/chrome_scanner.h"
#include "read/innermost_ranges.h"

namespace py = pybind11;

namespace collector::bindings {
namespace {

using namespace collector::read;  // NOLINT(google-build-using-namespace): what is bound

using Int64s = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;

// What the extension holds of one trace.
class Scan {
 public:
  bool feed(const py::bytes& piece) {
    const std::string_view bytes(piece);
    const GilRelease no_gil;
    return scanner_.feed(bytes);
  }

  void finish() {
    const GilRelease no_gil;
    scanner_.finish();
  }

  const ChromeScanner& scanner() const { return scanner_; }

  // One part of these events.
  template <typename Value>
  py::array_t<Value> column(Value ChromeEvent::* part, const Int64s& rows) const {
    py::array_t<Value> values(rows.size());
    Value* const out = values.mutable_data();
    const int64_t* const wanted = rows.data();
    const auto count = static_cast<size_t>(rows.size());
    const auto num_events = static_cast<int64_t>(scanner_.events().size());
    const bool are_events =
        std::all_of(wanted, wanted + count, [&](int64_t row) { return 0 <= row && row < num_events; });
    if (!are_events) throw py::index_error("no event has this number");
    const GilRelease no_gil;
    for (size_t i = 0; i < count; ++i) out[i] = scanner_.events()[static_cast<size_t>(wanted[i])].*part;
    return values;
  }

  // One part of each event, in file order.
  template <typename Value>
  py::array_t<Value> column(Value ChromeEvent::* part) const {
    py::array_t<Value> values(static_cast<py::ssize_t>(scanner_.events().size()));
    Value* out = values.mutable_data();
    const GilRelease no_gil;
    for (size_t first = 0, count = 0; first < scanner_.events().size(); first += count) {
      const ChromeEvent* const run = scanner_.events().run(first, count);
      for (size_t i = 0; i < count; ++i) *out++ = run[i].*part;
    }
    return values;
  }

  bool has_categories() const {
    for (size_t i = 0; i < scanner_.events().size(); ++i) {
      if (scanner_.events()[i].category != 0) return true;
    }
    return false;
  }

  py::array_t<uint8_t> phases() const { return column(&ChromeEvent::phase).view("u1"); }

  py::list tracks() const {
    py::list shown;
    for (const auto& [process, thread] : scanner_.tracks()) {
      shown.append(py::make_tuple(shown_text(process), shown_text(thread)));
    }
    return shown;
  }

  py::list members() const {
    py::list shown;
    for (const auto& [name, value] : scanner_.members()) {
      shown.append(py::make_tuple(shown_text(name), shown_text(value)));
    }
    return shown;
  }

  py::list texts(const Int64s& numbers) const {
    py::list shown;
    for (py::ssize_t i = 0; i < numbers.size(); ++i) {
      const auto number = static_cast<uint64_t>(numbers.data()[i]);
      if (!scanner_.has_text(number)) throw py::index_error("no text has this number");
      shown.append(shown_text(scanner_.text(static_cast<uint32_t>(number))));
    }
    return shown;
  }

  py::list argument_names() const { return shown(scanner_.argument_names()); }

  Int64s numbers(size_t argument, const Int64s& rows, int64_t missing) const {
    check(argument);
    return gathered(scanner_.numbers(argument), rows, missing);
  }

  Int64s written_starts(const Int64s& rows) const { return gathered(scanner_.written_starts(), rows, -1); }
  Int64s written_durations(const Int64s& rows) const { return gathered(scanner_.written_durations(), rows, -1); }

  Int64s argument_texts(size_t argument, const Int64s& rows) const {
    check(argument);
    return gathered(scanner_.texts(argument), rows, -1);
  }

 private:
  static py::list shown(const std::vector<std::string>& names) {
    py::list all;
    for (const std::string& name : names) all.append(shown_text(name));
    return all;
  }

  void check(size_t argument) const {
    if (argument >= scanner_.argument_names().size()) throw py::index_error("no argument has this number");
  }

  static Int64s gathered(const SparseColumn& column, const Int64s& rows, int64_t missing) {
    Int64s values(rows.size());
    int64_t* const out = values.mutable_data();
    const int64_t* const wanted = rows.data();
    const auto count = static_cast<size_t>(rows.size());
    const GilRelease no_gil;
    column.gather(wanted, count, missing, out);
    return values;
  }

  ChromeScanner scanner_;
};

std::vector<int64_t> copied(const Int64s& values) { return {values.data(), values.data() + values.size()}; }

Int64s array_of(const std::vector<int64_t>& values) {
  return Int64s(static_cast<py::ssize_t>(values.size()), values.data());
}

py::tuple innermost(const Int64s& threads, const Int64s& starts_ns, const Int64s& ends_ns, const Int64s& asked_threads,
                    const Int64s& asked_ns) {
  if (threads.size() != starts_ns.size() || threads.size() != ends_ns.size() || asked_threads.size() != asked_ns.size())
    throw py::value_error("the columns differ in length");
  const Ranges ranges{copied(threads), copied(starts_ns), copied(ends_ns)};
  const Moments moments{copied(asked_threads), copied(asked_ns)};
  const Innermost found = [&] {
    const GilRelease no_gil;
    return innermost_ranges(ranges, moments);
  }();
  return py::make_tuple(array_of(found.ranges), array_of(found.depths));
}

}  // namespace

void bind_read(py::module_& module) {
  const auto scanned = [](auto get) { return [get](const Scan& scan) { return (scan.scanner().*get)(); }; };
  py::class_<Scan>(module, "ChromeScan", "A Chrome trace, read piece by piece into columns of its events.")
      .def(py::init<>())
      .def("feed", &Scan::feed, py::arg("piece"), "Read on; whether there is anything to read behind this piece.")
      .def("finish", &Scan::finish, "There are no more pieces.")
      .def(
          "starts_ns", [](const Scan& scan, const Int64s& rows) { return scan.column(&ChromeEvent::start_ns, rows); },
          py::arg("rows"),
          "When these events began: NO_TIME where one states nothing, IMPOSSIBLE_TIME where it is no possible time.")
      .def(
          "durations_ns",
          [](const Scan& scan, const Int64s& rows) { return scan.column(&ChromeEvent::duration_ns, rows); },
          py::arg("rows"), "The same.")
      .def(
          "names", [](const Scan& scan, const Int64s& rows) { return scan.column(&ChromeEvent::name, rows); },
          py::arg("rows"), "Numbers of texts.")
      .def(
          "categories", [](const Scan& scan, const Int64s& rows) { return scan.column(&ChromeEvent::category, rows); },
          py::arg("rows"), "Numbers of texts.")
      .def("has_categories", &Scan::has_categories, "Whether any event has one.")
      .def(
          "track_numbers", [](const Scan& scan, const Int64s& rows) { return scan.column(&ChromeEvent::track, rows); },
          py::arg("rows"), "The place in `tracks` of the process and thread of each of these events.")
      .def(
          "shape_numbers", [](const Scan& scan) { return scan.column(&ChromeEvent::shape); },
          "The place in `shapes` of the arguments that each event has.")
      .def(
          "shapes", [](const Scan& scan) { return scan.scanner().shapes(); },
          "Numbers of arguments in the order in which an event has them. The first has none.")
      .def("phases", &Scan::phases, "The letter of each event's phase.")
      .def("tracks", &Scan::tracks, "Process and thread as they are written; empty where an event states none.")
      .def("members", &Scan::members, "(name, value as it is written) of the outermost object, without its events.")
      .def("argument_names", &Scan::argument_names, "By the numbers of arguments.")
      .def("numbers", &Scan::numbers, py::arg("argument"), py::arg("rows"), py::arg("missing"),
           "An argument of these events, where it is a whole number of 64 bits.")
      .def("argument_texts", &Scan::argument_texts, py::arg("argument"), py::arg("rows"),
           "An argument of these events as the number of a text, -1 where it is no text. Texts of odd numbers are\n"
           "values of other kinds as they are written.")
      .def("written_starts", &Scan::written_starts, py::arg("rows"),
           "The starts of these events that are IMPOSSIBLE_TIME, as numbers of texts; -1 for all others.")
      .def("written_durations", &Scan::written_durations, py::arg("rows"), "The same.")
      .def("texts", &Scan::texts, py::arg("numbers"), "The texts of these numbers.")
      .def_property_readonly("num_entries", scanned(&ChromeScanner::num_entries))
      .def_property_readonly("num_not_objects", scanned(&ChromeScanner::num_not_objects))
      .def_property_readonly("num_arguments_left_out", scanned(&ChromeScanner::num_arguments_left_out))
      .def_property_readonly("num_not_finite", scanned(&ChromeScanner::num_not_finite))
      .def_property_readonly("num_ill_formed", scanned(&ChromeScanner::num_ill_formed))
      .def_property_readonly("first_ill_formed", scanned(&ChromeScanner::first_ill_formed))
      .def_property_readonly("has_events", scanned(&ChromeScanner::has_events))
      .def_property_readonly("is_closed", scanned(&ChromeScanner::is_closed))
      .def_property_readonly("failure",
                             [](const Scan& scan) -> std::optional<std::string> {
                               const char* const why = scan.scanner().failure();
                               return why == nullptr ? std::nullopt : std::optional<std::string>(why);
                             })
      .def_property_readonly("failed_at", scanned(&ChromeScanner::failed_at));
  module.def("innermost_ranges", &innermost, py::arg("threads"), py::arg("starts_ns"), py::arg("ends_ns"),
             py::arg("asked_threads"), py::arg("asked_ns"),
             "(the innermost range open on each thread and time that is asked for, -1: none; how many ranges were open "
             "around\neach range). See native/read/innermost_ranges.h.");
}

}  // namespace collector::bindings
