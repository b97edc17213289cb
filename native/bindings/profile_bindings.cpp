#include "bindings/profile_bindings.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/gil.h"
#include "bindings/message_bytes.h"
#include "stepstats/labelled_activities.h"
#include "stepstats/message_tree.h"
#include "stepstats/node_columns.h"

namespace py = pybind11;

namespace collector::bindings {

using stepstats::Columns;
using stepstats::kMaxFields;
using stepstats::MessageColumn;
using stepstats::MessageTree;

namespace {

using Int64s = py::array_t<int64_t, py::array::c_style>;

Int64s zeros(size_t count) {
  Int64s array(static_cast<py::ssize_t>(count));
  std::fill_n(array.mutable_data(), count, 0);
  return array;
}

void check_field(uint32_t field) {
  if (stepstats::place_of(field) == kMaxFields) throw py::value_error("a field that cannot be requested");
}

py::tuple read_node_columns(const py::buffer& device, const std::vector<uint32_t>& numbers,
                            const std::vector<uint32_t>& texts) {
  const MessageBytes given(device);
  const std::string_view bytes = given.view();
  const size_t num_nodes = [&] {
    const GilRelease no_gil;
    return stepstats::count_nodes(bytes);
  }();
  Columns columns;
  py::dict answer_numbers;
  for (const uint32_t field : numbers) {
    check_field(field);
    Int64s values = zeros(num_nodes);
    columns.numbers[stepstats::place_of(field)] = values.mutable_data();
    answer_numbers[py::int_(field)] = std::move(values);
  }
  py::dict answer_texts;
  for (const uint32_t field : texts) {
    check_field(field);
    Int64s begins = zeros(num_nodes);
    Int64s ends = zeros(num_nodes);
    columns.texts[stepstats::place_of(field)] = {begins.mutable_data(), ends.mutable_data()};
    answer_texts[py::int_(field)] = py::make_tuple(std::move(begins), std::move(ends));
  }
  {
    const GilRelease no_gil;
    read_nodes(bytes, num_nodes, columns);
  }
  return py::make_tuple(num_nodes, std::move(answer_numbers), std::move(answer_texts));
}

void check_spans(std::string_view bytes, const Int64s& begins, const Int64s& ends) {
  if (begins.ndim() != 1 || ends.ndim() != 1 || begins.size() != ends.size()) {
    throw py::value_error("as many begins as ends are needed");
  }
  const auto limit = static_cast<int64_t>(bytes.size());
  for (py::ssize_t row = 0; row < begins.size(); ++row) {
    const int64_t begin = begins.data()[row];
    const int64_t end = ends.data()[row];
    if (begin < 0 || end < begin || end > limit) throw py::index_error("a text beyond the end of the bytes");
  }
}

py::dict read_message_numbers(const py::buffer& data, const Int64s& begins, const Int64s& ends,
                              const std::vector<uint32_t>& fields) {
  const MessageBytes given(data);
  const std::string_view bytes = given.view();
  check_spans(bytes, begins, ends);
  const auto count = static_cast<size_t>(begins.size());
  std::vector<MessageColumn> columns;
  py::dict answer;
  for (const uint32_t field : fields) {
    Int64s values = zeros(count);
    columns.push_back({field, values.mutable_data()});
    answer[py::int_(field)] = std::move(values);
  }
  const int64_t* const from = begins.data();
  const int64_t* const until = ends.data();
  {
    const GilRelease no_gil;
    read_messages(bytes, from, until, count, columns);
  }
  return answer;
}

py::tuple read_distinct_texts(const py::buffer& data, const Int64s& begins, const Int64s& ends) {
  const MessageBytes given(data);
  const std::string_view bytes = given.view();
  check_spans(bytes, begins, ends);
  const auto count = static_cast<size_t>(begins.size());
  Int64s numbers(begins.size());
  int64_t* const to = numbers.mutable_data();
  const int64_t* const from = begins.data();
  const int64_t* const until = ends.data();
  const std::vector<std::string_view> texts = [&] {
    const GilRelease no_gil;
    return stepstats::distinct_texts(bytes, from, until, count, to);
  }();
  py::list decoded(texts.size());
  for (size_t number = 0; number < texts.size(); ++number) {
    const std::string_view text = texts[number];
    PyObject* const object = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
    if (object == nullptr) throw py::error_already_set();
    PyList_SET_ITEM(decoded.ptr(), static_cast<Py_ssize_t>(number), object);
  }
  return py::make_tuple(std::move(decoded), std::move(numbers));
}

void check_count(const MessageTree& tree, size_t count) {
  if (count != tree.num_rows) throw py::value_error("as many values as rows are needed");
}

std::vector<std::string_view> texts_of(const py::list& texts) {
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (const py::handle text : texts) {
    Py_ssize_t num_bytes = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &num_bytes);
    if (bytes == nullptr) throw py::error_already_set();
    views.emplace_back(bytes, static_cast<size_t>(num_bytes));
  }
  return views;
}

py::list read_gpu_labels(const py::list& names, const py::list& labels) {
  const std::vector<std::string_view> name_texts = texts_of(names);
  const std::vector<std::string_view> label_texts = texts_of(labels);
  if (name_texts.size() != label_texts.size()) throw py::value_error("as many labels as names are needed");
  py::list answer;
  for (size_t row = 0; row < name_texts.size(); ++row) {
    const stepstats::LabelledGpuWork work = stepstats::read_gpu_label(name_texts[row], label_texts[row]);
    answer.append(py::make_tuple(static_cast<uint32_t>(work.kind), work.num_bytes, work.copy_kind, work.from, work.to,
                                 work.src_device, work.dst_device, work.num_blocks));
  }
  return answer;
}

py::bytes write_message_tree(const Int64s& depths, const std::vector<std::pair<uint32_t, Int64s>>& numbers,
                             const std::vector<std::pair<uint32_t, py::list>>& texts,
                             const std::vector<py::bytes>& encoded, uint32_t children) {
  MessageTree tree;
  tree.num_rows = static_cast<size_t>(depths.size());
  tree.depths = depths.data();
  tree.children_field = children;
  if (!is_tree(tree)) throw py::value_error("the depths are not those of a tree");
  for (const auto& [field, values] : numbers) {
    check_count(tree, static_cast<size_t>(values.size()));
    tree.numbers.push_back({field, values.data()});
  }
  for (const auto& [field, values] : texts) {
    check_count(tree, values.size());
    tree.texts.push_back({field, texts_of(values)});
  }
  check_count(tree, encoded.size());
  for (const py::bytes& fields : encoded) tree.encoded.push_back(fields);
  const std::string bytes = [&] {
    const GilRelease no_gil;
    return encode_message_tree(tree);
  }();
  return bytes;
}

}  // namespace

void bind_profile(py::module_& module) {
  module.def("node_columns", &read_node_columns, py::arg("device"), py::arg("numbers"), py::arg("texts"),
             "Fields of all nodes of a DeviceStepStats message: how many nodes, {field: int64 values} and\n"
             "{field: (begins, ends)} of texts, in bytes from the start of the message. What is not there is 0.\n\n"
             "Raises WireError(what, position), and ValueError for fields other than those below 32 and ours.");
  module.def("message_numbers", &read_message_numbers, py::arg("data"), py::arg("begins"), py::arg("ends"),
             py::arg("fields"),
             "{field: int64 values} of the messages in spans: fields that are numbers, 0 where they are not there.\n\n"
             "Raises WireError(what, position), and IndexError for a span beyond the end.");
  module.def("gpu_labels", &read_gpu_labels, py::arg("names"), py::arg("labels"),
             "What the nodes of a GPU say in their names and labels: for each a tuple of the kind of Activity, bytes\n"
             "(-1: not known), kind of copy, kinds of memory from and to, devices from and to (-1: not known), and\n"
             "blocks of the grid (0: not known).\n\nRaises ValueError where there are not as many labels as names.");
  module.def("distinct_texts", &read_distinct_texts, py::arg("data"), py::arg("begins"), py::arg("ends"),
             "The distinct texts of spans, in order of first use, and for each span the place of its text among them."
             "\n\nWhat is no UTF-8 is replaced. Raises IndexError for a span beyond the end.");
  module.def("message_tree", &write_message_tree, py::arg("depths"), py::arg("numbers"), py::arg("texts"),
             py::arg("encoded"), py::arg("children"),
             "The bytes of messages in each other, one for each row in depth-first order: [(field, int64 values)],\n"
             "[(field, texts)], further fields as bytes, and the field that holds the messages below a message.\n\n"
             "Raises ValueError where a column has another length, or the depths are not those of a tree.");
}

}  // namespace collector::bindings
