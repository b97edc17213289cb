// The CUPTI client's Python interface: probe, start, stop, annotations. It contains no logic.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/annotation_calls.h"
#include "bindings/gil.h"
#include "bindings/shown_text.h"
#include "bindings/tables.h"
#include "capture/decode_benchmark.h"
#include "capture/decoder.h"
#include "capture/described_exception.h"
#include "capture/packed_rows.h"
#include "capture/session.h"
#include "cupti/activity_kinds.h"
#include "cupti/library.h"
#include "cupti/process_use.h"
#include "cupti/version_checks.h"
#include "inject/control_server.h"
#include "inject/injection.h"
#include "nvtx/copies.h"
#include "nvtx/handler.h"
#include "store/demangled_name.h"

namespace py = pybind11;

namespace collector::bindings {
namespace {

using capture::Session;

// Becomes _native.CaptureError(kind, cause, remedy) in Python.
struct CaptureError : std::exception {
  explicit CaptureError(cupti::Failure f) : failure(std::move(f)) {}
  const char* what() const noexcept override { return failure.cause.c_str(); }
  cupti::Failure failure;
};

py::dict strides_of(const cupti::Library& library) {
  py::dict strides;
  for (const cupti::KindOption& entry : cupti::kKindOptions) {
    strides[py::str(std::string(entry.record))] = library.stride(entry.kind);
  }
  return strides;
}

struct Probe {
  cupti::Library::Opened opened;
  std::optional<cupti::Failure> unusable;
  std::vector<cupti::Device> devices;
};

Probe probed(const cupti::LibraryPaths& paths) {
  const GilRelease release;  // libraries are searched and tried, and CUDA is initialised
  Probe found{cupti::Library::open(paths), std::nullopt, {}};
  if (const auto* const library = std::get_if<std::shared_ptr<const cupti::Library>>(&found.opened)) {
    found.unusable = (*library)->initialise_driver();
    found.devices = (*library)->devices();
  }
  return found;
}

py::dict probe(const std::string& libcupti, const std::string& libcuda, const std::vector<std::string>& search_roots) {
  const Probe found = probed({libcupti, libcuda, search_roots});
  const cupti::Library::Opened& opened = found.opened;
  py::dict out;
  out["available"] = false;
  if (const auto* failure = std::get_if<cupti::Failure>(&opened)) {
    out["error"] = cupti::name_of(failure->kind);
    out["cause"] = failure->cause;
    out["remedy"] = failure->remedy;
    if (failure->driver) {
      out["driver_path"] = failure->driver->path;
      out["driver_version"] = failure->driver->version;
    }
    return out;
  }
  const auto& library = *std::get<std::shared_ptr<const cupti::Library>>(opened);
  out["driver_path"] = library.driver_path();
  out["driver_version"] = library.driver_version();
  out["cupti_path"] = library.cupti_path();
  out["cupti_reason"] = library.cupti_reason();
  out["cupti_passed_over"] = library.passed_over();
  out["cupti_api_version"] = library.api_version();
  out["cuda_version"] = library.cuda_version();
  out["simulated"] = library.simulated();
  out["features"] = library.features();
  out["strides"] = strides_of(library);
  py::list devices;
  const std::optional<cupti::Failure>& unusable = found.unusable;
  for (const cupti::Device& device : found.devices) {
    py::dict entry;
    entry["ordinal"] = device.ordinal;
    entry["name"] = device.name;
    devices.append(entry);
  }
  out["devices"] = devices;
  out["available"] = !unusable;
  out["error"] = unusable ? cupti::name_of(unusable->kind) : "";
  out["cause"] = unusable ? unusable->cause : "";
  out["remedy"] = unusable ? unusable->remedy : "";
  return out;
}

capture::StartOptions start_options(const py::dict& options) {
  capture::StartOptions out;
  for (const auto& item : options) {
    const auto name = item.first.cast<std::string>();
    if (name == "libcupti") {
      out.paths.libcupti = item.second.cast<std::string>();
    } else if (name == "libcuda") {
      out.paths.libcuda = item.second.cast<std::string>();
    } else if (name == "search_roots") {
      out.paths.search_roots = item.second.cast<std::vector<std::string>>();
    } else if (name == "kinds") {
      out.kinds = cupti::kinds_named(item.second.cast<std::vector<std::string>>());
    } else if (name == "buffer_bytes") {
      out.buffer_bytes = item.second.cast<size_t>();
    } else if (name == "max_buffers") {
      out.max_buffers = item.second.cast<uint32_t>();
    } else if (name == "share_subscription") {
      out.share_subscription = item.second.cast<bool>();
    } else if (name == "journal") {
      out.journal = item.second.cast<std::string>();
    } else if (name == "journal_only") {
      out.journal_only = item.second.cast<bool>();
    } else if (name == "segment_bytes") {
      out.segments.segment_bytes = item.second.cast<uint64_t>();
    } else if (name == "ring_bytes") {
      out.segments = capture::SegmentLimits::of_ring(item.second.cast<uint64_t>(), 0);
    } else if (name == "ring_ns") {
      out.segments = capture::SegmentLimits::of_ring(0, item.second.cast<int64_t>());
    } else if (name == "budget_millionths") {
      out.budget_millionths = item.second.cast<uint32_t>();
    } else if (name == "budget_period_ms") {
      out.budget_period_ns = item.second.cast<int64_t>() * capture::kMillisecond;
    } else if (name == "is_recorder") {
      out.watch = item.second.cast<bool>();
      out.holder = out.watch ? capture::Holder::kRecorder : capture::Holder::kCaller;
    } else if (name == "nvtx_domains") {
      out.nvtx = {false, item.second.cast<std::vector<std::string>>()};
    } else if (name == "texts") {
      out.journal_texts = item.second.cast<std::map<std::string, std::string>>();
    } else {
      throw py::value_error("unknown option: " + name);
    }
  }
  capture::check(out);
  return out;
}

void start(const py::dict& options) {
  const capture::StartOptions parsed = start_options(options);
  std::optional<cupti::Failure> failure;
  {
    const GilRelease release;
    inject::begin_before_session();
    failure = Session::instance().start(parsed);
  }
  if (failure) throw CaptureError(*failure);
}

py::object stop(bool synchronize, int timeout_ms, bool is_recorder) {
  std::optional<capture::Capture> capture;
  {
    const GilRelease release;
    capture = Session::instance().stop(synchronize, int64_t{timeout_ms} * 1'000'000,
                                       is_recorder ? capture::Holder::kRecorder : capture::Holder::kCaller);
  }
  if (!capture) return py::none();
  py::dict out = tables_of(*capture->library, *capture->store, std::move(capture->annotations),
                           capture->annotation_paths, capture->own_calls);
  py::dict clock;
  clock["cupti_start_ns"] = capture->start.cupti_ns;
  clock["cupti_stop_ns"] = capture->stop.cupti_ns;
  clock["wall_start_ns"] = capture->start.wall_ns;
  clock["wall_stop_ns"] = capture->stop.wall_ns;
  clock["uncertainty_ns"] = capture->uncertainty_ns();
  py::dict devices;
  for (const cupti::Device& device : capture->devices) devices[py::int_(device.ordinal)] = device.name;
  py::dict environment;
  environment["source"] = "native";
  environment["driver_version"] = capture->library->driver_version();
  environment["cupti_path"] = capture->library->cupti_path();
  environment["cupti_api_version"] = capture->library->api_version();
  environment["cuda_version"] = capture->library->cuda_version();
  environment["simulated"] = capture->library->simulated();
  environment["shared_subscription"] = capture->shared_subscription;
  if (capture->peer_copies) environment["peer_copies"] = *capture->peer_copies;
  if (!capture->first_subscriber.empty()) environment["first_subscriber"] = capture->first_subscriber;
  environment["devices"] = devices;
  out["counters"] = capture->counters;
  out["clock"] = clock;
  out["environment"] = environment;
  return out;
}

Session::Completeness completeness_of(const std::string& name) {
  if (name == "as is") return Session::Completeness::kAsIs;
  if (name == "complete") return Session::Completeness::kComplete;
  if (name == "cut") return Session::Completeness::kCut;
  if (name == "running") return Session::Completeness::kRunning;
  throw py::value_error("unknown completeness: " + name);
}

template <capture::Owner program>
constexpr AnnotationCalls kCallsOf = {
    [](const char* path, size_t size, uint32_t details, uint64_t block) {
      try {
        Session::instance().annotator().push_annotation(program, {path, size}, details, block);
      } catch (...) {  // it throws nothing else, and of a type that may not be ours
        return false;
      }
      return true;
    },
    [](bool is_over) {
      try {
        Session::instance().annotator().pop_annotation(program, is_over);
      } catch (...) {  // no memory: the annotation ends with the session
        return;
      }
    },
};

py::object mark(const std::string& wanted, bool synchronize, int timeout_ms) {
  const Session::Completeness completeness = completeness_of(wanted);
  std::optional<capture::JournalMark> mark;
  {
    const GilRelease release;
    mark = Session::instance().mark(completeness, synchronize, int64_t{timeout_ms} * 1'000'000);
  }
  if (!mark) return py::none();
  py::dict out;
  out["journal"] = py::bytes(mark->journal);
  out["segment"] = mark->segment;
  out["cupti_ns"] = mark->time.cupti_ns;
  out["wall_ns"] = mark->time.wall_ns;
  out["uncertainty_ns"] = mark->time.uncertainty_ns;
  out["own_thread_id"] = mark->own_calls.thread_id;
  out["own_from_ns"] = mark->own_calls.from_ns;
  py::list held;
  for (const capture::HeldBuffer& buffer : mark->held) held.append(py::make_tuple(buffer.request, buffer.used_bytes));
  out["held"] = held;
  out["has_calls"] = mark->has_calls;
  out["losses"] = mark->losses;
  out["is_up_to_date"] = mark->is_up_to_date;
  return out;
}

py::object instant() {
  const std::optional<capture::Anchor> anchor = Session::instance().instant();
  if (!anchor) return py::none();
  return py::make_tuple(anchor->cupti_ns, anchor->wall_ns, anchor->uncertainty_ns);
}

void listen(const py::dict& start, const std::string& socket_folder) {
  const inject::ControlOptions options{start_options(start), "", socket_folder};
  std::optional<cupti::Failure> failure;
  {
    const GilRelease release;
    failure = inject::listen(options);
  }
  if (failure) throw CaptureError(*failure);
}

py::object watched_state() {
  const std::optional<capture::WatchedState> state = Session::instance().watched_state();
  if (!state) return py::none();
  py::dict out;
  out["rows"] = state->rows;
  out["outstanding"] = state->outstanding;
  out["buffers_held"] = state->buffers_held;
  out["error"] = state->error;
  out["error_function"] = Session::instance().callback_name(state->error_domain, state->error_callback);
  out["is_broken"] = Session::instance().is_journal_broken();
  return out;
}

py::object pack_rows(const py::buffer& rows, size_t row_bytes,
                     const std::vector<std::tuple<uint32_t, uint8_t, bool>>& columns) {
  const py::buffer_info info = rows.request();
  std::vector<store::Column> described;
  for (const auto& [offset, bytes, is_signed] : columns) {
    if (offset + bytes > row_bytes) throw py::value_error("a column ends behind its row");
    described.push_back({"", offset, bytes, is_signed});
  }
  if (row_bytes == 0) throw py::value_error("rows without bytes");
  std::vector<char> packed;
  const auto count = static_cast<size_t>(info.size * info.itemsize) / row_bytes;
  capture::RowPacker packer;
  if (!packer.pack({static_cast<const char*>(info.ptr), count, row_bytes, described.data(), described.size()},
                   packed)) {
    return py::none();
  }
  return py::bytes(packed.data(), packed.size());
}

// The library that decodes a recorded buffer: the layouts of a version, or a real libcupti that steps over the records.
std::shared_ptr<const cupti::Library> library_for(int cuda_version, const std::string& libcupti) {
  if (libcupti.empty()) return cupti::Library::layouts_only(cuda_version);
  cupti::Library::Opened opened = cupti::Library::open_for_decoding(libcupti);
  if (const auto* failure = std::get_if<cupti::Failure>(&opened)) throw CaptureError(*failure);
  return std::get<std::shared_ptr<const cupti::Library>>(opened);
}

// An 8-aligned copy, because bytes objects guarantee no alignment.
std::vector<uint64_t> aligned_copy(const py::buffer_info& info) {
  std::vector<uint64_t> copy((static_cast<size_t>(info.size * info.itemsize) + 7) / 8);
  if (!copy.empty()) std::memcpy(copy.data(), info.ptr, static_cast<size_t>(info.size * info.itemsize));
  return copy;
}

py::dict decode_buffer(const py::buffer& buffer, int cuda_version, const std::string& libcupti_path) {
  const py::buffer_info info = buffer.request();
  std::vector<uint64_t> copy = aligned_copy(info);
  const auto library = library_for(cuda_version, libcupti_path);
  store::Store store;
  capture::Decoder decoder(*library, store);
  decoder.decode(reinterpret_cast<uint8_t*>(copy.data()), static_cast<size_t>(info.size * info.itemsize));
  store.sort();
  py::dict out = tables_of(*library, store, {}, {}, {0, INT64_MAX});
  py::dict counters;
  counters["records_decoded"] = decoder.counts().records;
  counters["records_unknown_kind"] = decoder.counts().unknown_kinds;
  counters["bytes_unparsed"] = decoder.counts().bytes_unparsed;
  out["counters"] = counters;
  out["strides"] = strides_of(*library);
  return out;
}

py::dict benchmark_decode(const py::buffer& buffer, int cuda_version, int repeats) {
  const py::buffer_info info = buffer.request();
  const auto bytes = static_cast<size_t>(info.size * info.itemsize);
  std::vector<uint64_t> input = aligned_copy(info);
  const auto library = library_for(cuda_version, "");
  const capture::DecodeTimes times = [&] {
    const GilRelease release;
    return capture::measure_decoding(*library, std::move(input), bytes, repeats);
  }();
  py::dict out;
  out["ns_decode"] = times.decode_ns;
  out["ns_memcpy"] = times.memcpy_ns;
  out["records"] = times.records;
  out["bytes"] = bytes;
  return out;
}

py::dict nvtx_status(const std::vector<std::string>& wanted) {
  const nvtx::Status status = [&wanted] {
    const GilRelease release;
    return nvtx::status(wanted);
  }();
  py::dict out;
  out["libraries"] = status.libraries;
  py::list domains;
  for (const std::string& name : status.domains.made) domains.append(shown_text(name));
  out["domains"] = domains;
  py::list absent;
  for (const std::string& name : status.domains.absent) absent.append(shown_text(name));
  out["absent"] = absent;
  out["next_tool_trouble"] = status.next_tool_trouble;
  py::dict thread_names;
  for (const auto& [thread, name] : status.thread_names) thread_names[py::int_(thread)] = shown_text(name);
  out["thread_names"] = thread_names;
  out["failures"] = status.failures;
  py::dict devices;
  for (const auto& [device, name] : status.cuda_names.devices) devices[py::int_(device)] = shown_text(name);
  out["device_names"] = devices;
  py::dict contexts;
  for (const auto& [context, name] : status.cuda_names.contexts) contexts[py::int_(context)] = shown_text(name);
  out["context_names"] = contexts;
  py::dict streams;
  for (const auto& [place, name] : status.cuda_names.streams) {
    streams[py::make_tuple(place.first, place.second)] = shown_text(name);
  }
  out["stream_names"] = streams;
  out["names_unknown"] = status.cuda_names.unknown;
  out["names_dropped"] = status.names_dropped;
  out["names_cut"] = status.names_cut;
  return out;
}

std::vector<std::pair<std::string, std::string>> nvtx_copies() {
  std::vector<std::pair<std::string, std::string>> copies;
  for (const nvtx::Copy& copy : nvtx::copies()) copies.emplace_back(copy.library, nvtx::name_of(copy.state));
  return copies;
}

}  // namespace
}  // namespace collector::bindings

PYBIND11_MODULE(_native, m, py::mod_gil_not_used()) {
  using namespace collector;
  using namespace collector::bindings;
  m.doc() = "The CUPTI client. One session at a time; see collector.tracing.session for the interface people use.";

  static py::handle capture_error = py::exception<CaptureError>(m, "CaptureError", PyExc_RuntimeError).release();
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const CaptureError& error) {
      py::object instance = py::reinterpret_borrow<py::object>(capture_error)(error.failure.cause);
      instance.attr("kind") = cupti::name_of(error.failure.kind);
      instance.attr("cause") = error.failure.cause;
      instance.attr("remedy") = error.failure.remedy;
      PyErr_SetObject(capture_error.ptr(), instance.ptr());
    }
  });

  py::register_local_exception_translator([](std::exception_ptr raised) {
    using Kind = capture::DescribedException::Kind;
    const capture::DescribedException found = capture::described(raised);
    if (found.kind == Kind::kOther) std::rethrow_exception(raised);
    if (found.kind == Kind::kNoMemory) {
      PyErr_NoMemory();
    } else {
      PyErr_SetString(PyExc_ValueError, found.text.c_str());
    }
  });

  Session::instance();  // created here, so that no fork of a thread can interrupt its creation

  m.def("probe", &probe, py::arg("libcupti") = "", py::arg("libcuda") = "",
        py::arg("search_roots") = std::vector<std::string>{},
        "What could be traced here, and with what; never raises. Initialises CUDA.");
  m.def(
      "cupti_candidates",
      [](const std::vector<std::string>& search_roots) { return cupti::Library::candidates({"", "", search_roots}); },
      py::arg("search_roots"), "The existing files among which a search for libcupti chooses, best first.");
  m.def("start", &start, py::arg("options"), "Opens the session. Raises CaptureError.");
  m.def("stop", &stop, py::arg("synchronize") = true, py::arg("timeout_ms") = 5000, py::arg("is_recorder") = false,
        "Closes the session of a trace or of a recorder; its tables, or None when none is open.");
  m.def("mark", &mark, py::arg("wanted"), py::arg("synchronize") = false, py::arg("timeout_ms") = 5000,
        "The present instant of the session of `collector run` or of a recorder, and how much of the work up to then "
        "is to be in its journal: as is, complete, cut (in closed segments), running (also unfinished kernels, once). "
        "None: there is none.");
  m.def("instant", &instant, "(CUPTI ns, wall ns, uncertainty ns) in the open session; None: none is open.");
  m.def("listen", &listen, py::arg("start"), py::arg("socket_folder"),
        "Listens for `collector attach`, whose recordings have these options. Raises CaptureError.");
  m.def(
      "listening_at",
      [] {
        const std::string name = [] {
          const GilRelease release;
          return inject::listening_at();
        }();
        return py::bytes(name);
      },
      "The name of the socket; empty: this process does not listen.");
  m.def("stop_listening", &inject::stop_listening, py::call_guard<GilRelease>(),
        "Ends the listening, and a recording that was begun so.");
  m.def(
      "note_facts",
      [](const std::map<std::string, std::string>& texts, const std::map<std::string, int64_t>& numbers) {
        Session::instance().note_facts(texts, numbers);
      },
      py::arg("texts"), py::arg("numbers"), "States facts in the journal of the open session.");
  m.def("watched_state", &watched_state, "What is known of the launches of a recorder; None: none is open.");
  m.def("pack_rows", &pack_rows, py::arg("rows"), py::arg("row_bytes"), py::arg("columns"),
        "The packed rows of a journal; None where they would not be smaller. A column is (offset, bytes, is_signed).");
  m.def(
      "abort", [] { Session::instance().abort(); }, py::call_guard<GilRelease>(),
      "Closes the session without waiting for the GPU, and forgets it.");
  m.def("is_active", [] { return Session::instance().active(); });
  m.def("is_forked", &cupti::forked_after_use,
        "Whether this process was forked from one that had used CUDA, so that it can record nothing.");
  m.def("is_idle", [] { return Session::instance().idle(); });
  m.def(
      "push_annotation",
      [](const std::string& path, uint32_t details) {
        Session::instance().annotator().push_annotation(capture::kProgram, path, details);
      },
      py::arg("path"), py::arg("details") = 0,
      "Puts the path on every launch of this thread until the matching pop. Its metadata is given by a number.");
  m.def("pop_annotation", [] { Session::instance().annotator().pop_annotation(capture::kProgram, true); });
  m.def(
      "annotation_calls",
      [](bool of_recorded_program) {
        const auto* const calls =
            of_recorded_program ? &kCallsOf<capture::kRecordedProgram> : &kCallsOf<capture::kProgram>;
        return py::capsule(calls, kAnnotationCalls);
      },
      py::arg("of_recorded_program") = false,
      "The functions push_annotation and pop_annotation for C++: for sessions of this program, or of others.");
  m.def(
      "note_details", [](const std::string& details) { Session::instance().note_details(details); }, py::arg("details"),
      "The metadata of annotations, in the order of their numbers; for the journal.");
  m.def(
      "note_run_details", [](const std::string& details) { Session::instance().note_run_details(details); },
      py::arg("details"), "The same in a process that `collector run` records, also before its recording begins.");
  m.def(
      "journal_trouble", [] { return Session::instance().journal_trouble(); }, py::call_guard<GilRelease>(),
      "Why the last session's journal broke off; empty if it did not.");
  m.def(
      "remove_journal", [] { Session::instance().remove_journal(); }, py::call_guard<GilRelease>(),
      "Takes the last session's journal away.");
  m.def("take_instantiated_graph", &capture::GraphLog::take_instantiated,
        "The id of the executable CUDA graph that this thread instantiated last in a session, once; 0: none.");
  m.def("nvtx_status", &nvtx_status, py::arg("wanted") = std::vector<std::string>{},
        "What the NVTX handler has seen in this process, and which of the wanted domains it has not.");
  m.def("nvtx_copies", &nvtx_copies, py::call_guard<GilRelease>(),
        "(library, state) of each copy of NVTX in this process: fresh, handled, missed, unknown.");
  m.def("capture_library", &nvtx::library_path, "The path of libcollector_capture.so.");
  m.def("demangle", &store::demangled_name, py::arg("name"));
  m.def("decode_buffer", &decode_buffer, py::arg("buffer"), py::arg("cuda_version") = cupti::kNewestKnownCuda,
        py::arg("libcupti_path") = "",
        "Decodes one buffer of CUPTI records laid out as in the given CUDA version (12040 is 12.4), or stepped by "
        "the given libcupti. Kernel names must be null pointers or point at live text.");
  m.def("benchmark_decode", &benchmark_decode, py::arg("buffer"), py::arg("cuda_version"), py::arg("repeats"),
        "CPU nanoseconds of decoding, and of a plain memcpy of the same bytes, by turns.");
}
