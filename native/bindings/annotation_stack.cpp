// The source keeps a stack of names for each thread, and a launch gets the innermost name. Tasks, suspended coroutines
// and functions that an executor runs in a copied context have names of their own. The names of a context are the value
// of a context variable, which Python switches with the task. Whenever the context of a thread changes, `resume` makes
// the stack of the thread equal to that of the context: it pops the names that the context lacks and pushes those that
// the thread lacks.
//
// Calls of the source, and of the Python functions of a stack, may run any Python code: garbage collection closes
// generators, and signal handlers run. Such code may enter and leave annotations of this stack and of others. Therefore
// places and the stack of the thread are held for as long as a function here uses them.
#include "bindings/annotation_stack.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/annotation_calls.h"
#include "bindings/free_threading.h"
#include "store/long_names.h"

namespace py = pybind11;

namespace collector::bindings {
namespace {

// An open annotation, linked to the annotation around it. The innermost one is the value of the context variable.
struct Place {
  PyObject_HEAD Place* outer;  // owned; null: this annotation is the outermost
  const void* owner;           // the object that enters and leaves it; only compared
  uint64_t stack;              // number of its AnnotationStack
  uint64_t number;             // of this process, from 1 on
  std::string path;
  uint32_t details;
  // Number of the same details without figures that are counted already; -1: not determined yet.
  std::atomic<int64_t> continued;
  std::atomic<bool> is_silent;  // it names no launches
  std::atomic<bool> is_left;    // it was left while annotations inside it were still open
};

struct AnnotationStack {
  PyObject_HEAD uint64_t number;
  const AnnotationCalls* calls;  // null: `push` and `pop` are called instead
  PyObject* push;                // (path[, number of details])
  PyObject* pop;                 // ()
  PyObject* capsule;             // owns `calls`
  PyObject* continued;           // (number of details) -> number of the same details without figures counted already
  PyObject* suspends;            // (frame of a generator) -> whether it may yield inside the block that it enters now
  std::atomic<PyObject*> on_first;  // called before the first annotation; null afterwards
  std::atomic<bool> has_ended;
  std::atomic<bool> is_detached;
  // The figures of the ledger with the prefix annotations_.
  std::atomic<uint64_t> mixed;
  std::atomic<uint64_t> unfollowed;
  std::atomic<uint64_t> suspended;
};

PyTypeObject* place_type = nullptr;
PyTypeObject* stack_type = nullptr;
PyObject* place_variable = nullptr;

constexpr size_t kMostKeptPath = 4096;  // bytes
// The source sees of a longer path that it is too long, and cuts it.
constexpr size_t kLongestPath = store::kLongestName + 4;

// A name that the source has for a thread.
struct PushedPlace {
  Place* place;     // owned
  PyObject* token;  // owned: sets the context variable back to the place around this one; null: there is none
};

// The names that the source has for a thread.
struct Pushed {
  uint64_t stack;                   // number of the AnnotationStack
  std::vector<PushedPlace> places;  // outermost first
  size_t num_uses = 0;              // functions on the C++ stack that use `places`
};

// Places of threads that ended inside an annotation. A thread that ends is none of Python's, which releasing needs.
// Without a lock, because a forked child would wait for ever for one that another thread of its parent held.
struct Leftover {
  std::vector<PushedPlace> places;
  Leftover* next;
};
std::atomic<Leftover*> leftover{nullptr};

void put_aside(const std::vector<PushedPlace>& places) {
  auto* const left = new Leftover{places, leftover.load(std::memory_order_relaxed)};
  while (!leftover.compare_exchange_weak(left->next, left, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

// Releases what threads have left. For a thread of Python.
void release_leftover() {
  std::unique_ptr<Leftover> left(leftover.exchange(nullptr, std::memory_order_acquire));
  while (left != nullptr) {
    for (const PushedPlace& pushed : left->places) {
      Py_XDECREF(pushed.token);
      Py_DECREF(pushed.place);
    }
    left.reset(left->next);
  }
}

struct ThreadStacks {
  std::list<Pushed> stacks;  // elements do not move

  ThreadStacks() = default;
  ThreadStacks(const ThreadStacks&) = delete;
  ThreadStacks& operator=(const ThreadStacks&) = delete;
  ~ThreadStacks() {
    try {
      for (const Pushed& pushed : stacks) {
        if (!pushed.places.empty()) put_aside(pushed.places);
      }
    } catch (...) {
      return;  // without memory the places are never released
    }
  }
};
thread_local ThreadStacks this_thread;

Pushed& pushed_by(const AnnotationStack& self) {
  std::list<Pushed>& stacks = this_thread.stacks;
  for (Pushed& pushed : stacks) {
    if (pushed.stack == self.number) return pushed;
  }
  release_leftover();
  stacks.remove_if([](const Pushed& each) { return each.places.empty() && each.num_uses == 0; });
  return stacks.emplace_back(Pushed{self.number, {}});
}

// The places that the source has for this thread, which no other stack removes during the use.
class PushedHere {
 public:
  explicit PushedHere(const AnnotationStack& self) : pushed_(pushed_by(self)) { ++pushed_.num_uses; }
  PushedHere(const PushedHere&) = delete;
  PushedHere& operator=(const PushedHere&) = delete;
  ~PushedHere() { --pushed_.num_uses; }

  std::vector<PushedPlace>& places() const { return pushed_.places; }

 private:
  Pushed& pushed_;
};

// A reference to a place, or to none, that keeps the place.
py::object held(Place* place) { return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(place)); }

// The place of the current context, or null; a borrowed reference, which the context keeps until its value changes.
// `is_other`: there is another value, or none was ever set.
bool current_place(const AnnotationStack& self, Place** place, bool* is_other = nullptr) {
  PyObject* value = nullptr;
  if (PyContextVar_Get(place_variable, nullptr, &value) < 0) return false;
  *place = nullptr;
  if (is_other != nullptr) *is_other = value == nullptr;
  if (value == nullptr) return true;
  if (Py_TYPE(value) == place_type && reinterpret_cast<Place*>(value)->stack == self.number) {
    *place = reinterpret_cast<Place*>(value);
  } else if (is_other != nullptr) {
    *is_other = value != Py_None;
  }
  Py_DECREF(value);
  return true;
}

// Returns a token, which the caller owns; null: it failed.
PyObject* set_place_for_now(Place* place) {
  return PyContextVar_Set(place_variable, place == nullptr ? Py_None : reinterpret_cast<PyObject*>(place));
}

bool set_place(Place* place) {
  PyObject* const token = set_place_for_now(place);
  Py_XDECREF(token);
  return token != nullptr;
}

// Resets the variable to its value before the token, which costs less than another setting; false: this is another
// context, or there is no token.
bool set_back(const py::object& token) {
  if (!token) return false;
  if (PyContextVar_Reset(place_variable, token.ptr()) == 0) return true;
  PyErr_Clear();
  return false;
}

// The innermost annotation around and including `place` that names launches; null: there is none.
Place* naming(Place* place) {
  while (place != nullptr && (place->is_left || place->is_silent)) place = place->outer;
  return place;
}

bool call_push(const AnnotationStack& self, const Place& place, uint32_t details) {
  if (self.is_detached) return true;
  const std::string& path = place.path;
  if (self.calls != nullptr) {
    const bool is_done = self.calls->push(path.data(), path.size(), details, place.number);
    if (!is_done) PyErr_NoMemory();
    return is_done;
  }
  PyObject* const text = PyUnicode_FromStringAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
  if (text == nullptr) return false;
  PyObject* const number = details == 0 ? nullptr : PyLong_FromUnsignedLong(details);
  PyObject* const done = PyObject_CallFunctionObjArgs(self.push, text, number, nullptr);
  Py_DECREF(text);
  Py_XDECREF(number);
  Py_XDECREF(done);
  return done != nullptr;
}

bool call_pop(const AnnotationStack& self, bool is_over) {
  if (self.is_detached) return true;
  if (self.calls != nullptr) {
    self.calls->pop(is_over);
    return true;
  }
  PyObject* const done = PyObject_CallNoArgs(self.pop);
  Py_XDECREF(done);
  return done != nullptr;
}

// The number of the details of an annotation that is resumed: without the figures that are counted already.
bool continued_details(const AnnotationStack& self, Place& place, uint32_t* details) {
  *details = 0;
  if (place.details == 0) return true;
  int64_t known = place.continued.load(std::memory_order_relaxed);
  if (known < 0) {  // several threads may ask at once, and get the same answer
    PyObject* const number = PyObject_CallFunction(self.continued, "I", place.details);
    if (number == nullptr) return false;
    known = static_cast<int64_t>(PyLong_AsUnsignedLong(number));
    Py_DECREF(number);
    if (PyErr_Occurred() != nullptr) return false;
    place.continued.store(known, std::memory_order_relaxed);
  }
  *details = static_cast<uint32_t>(known);
  return true;
}

// The place is appended before the call, which may be interrupted: a superfluous pop is harmless, a missing one is not.
bool push(const AnnotationStack& self, std::vector<PushedPlace>& pushed, Place* place, uint32_t details) {
  pushed.push_back({place, nullptr});
  Py_INCREF(place);
  return call_push(self, *place, details);
}

// The place is held during the call of the source. `ended`: the place whose block ends now.
bool pop(const AnnotationStack& self, std::vector<PushedPlace>& pushed, const Place* ended) {
  const PushedPlace last = pushed.back();
  pushed.pop_back();
  const bool done = call_pop(self, last.place == ended || last.place->is_left || self.has_ended);
  Py_XDECREF(last.token);
  Py_DECREF(last.place);
  return done;
}

// The innermost place of the thread but the last `skipped` ones; null: there is none.
Place* innermost(const std::vector<PushedPlace>& pushed, size_t skipped) {
  return pushed.size() > skipped ? pushed[pushed.size() - 1 - skipped].place : nullptr;
}

// Gives the thread the names of `place`. `ended`: the place that is left in the usual order, if one is. `was_left`: a
// place below the innermost one of the thread was left.
bool resume(const AnnotationStack& self, std::vector<PushedPlace>& pushed, Place* place, const Place* ended = nullptr,
            bool was_left = false) {
  const py::object kept = held(place);  // with the places around it
  place = naming(place);
  if (!was_left) {
    if (innermost(pushed, 0) == place) return true;
    if (!pushed.empty() && innermost(pushed, 1) == place) return pop(self, pushed, ended);  // the usual end
  }
  std::vector<Place*> names;  // innermost first
  for (; place != nullptr; place = naming(place->outer)) names.push_back(place);
  size_t common = 0;
  while (common < pushed.size() && common < names.size() && pushed[common].place == names[names.size() - 1 - common]) {
    ++common;
  }
  while (pushed.size() > common) {
    if (!pop(self, pushed, ended)) return false;
  }
  if (self.has_ended) return true;
  for (size_t i = names.size() - common; i-- > 0;) {
    uint32_t details = 0;
    if (!continued_details(self, *names[i], &details) || !push(self, pushed, names[i], details)) return false;
  }
  return true;
}

// Whether a generator, which may be the caller of annotate.__enter__, enters the annotation for a block in which it may
// yield: launches meanwhile are those of its own caller.
bool waits_inside(const AnnotationStack& self, PyFrameObject* caller, bool* waits) {
  *waits = false;
  if (caller == nullptr) return true;
  PyCodeObject* const code = PyFrame_GetCode(caller);
  const bool is_generator =
      (code->co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR)) != 0 && (code->co_flags & CO_ITERABLE_COROUTINE) == 0;
  Py_DECREF(code);
  bool done = true;
  if (is_generator) {
    PyObject* const answer = PyObject_CallFunctionObjArgs(self.suspends, reinterpret_cast<PyObject*>(caller), nullptr);
    const int truth = answer == nullptr ? -1 : PyObject_IsTrue(answer);
    done = truth >= 0;
    *waits = truth == 1;
    Py_XDECREF(answer);
  }
  return done;
}

// The name as UTF-8. Lone surrogates are escaped; `kept` owns the bytes of a name that has some.
bool utf8_of(PyObject* name, std::string_view* text, std::string& kept) {
  Py_ssize_t size = 0;
  if (const char* const data = PyUnicode_AsUTF8AndSize(name, &size)) {
    *text = {data, static_cast<size_t>(size)};
    return true;
  }
  PyErr_Clear();
  PyObject* const bytes = PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace");
  if (bytes == nullptr) return false;
  kept.assign(PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes)));
  Py_DECREF(bytes);
  *text = kept;
  return true;
}

#ifdef Py_GIL_DISABLED
Place* blank_place() {
  auto* const place = PyObject_New(Place, place_type);
  if (place != nullptr) new (&place->path) std::string();
  return place;
}
void keep_or_free(Place* place) {
  place->path.~basic_string();
  PyTypeObject* const type = Py_TYPE(place);
  PyObject_Free(place);
  Py_DECREF(type);
}
#else
Place* last_place = nullptr;  // deleted, but for its memory and that of its path; or null

// A place whose fields are to be set, but for `path`, which has any text. Most blocks end before the next one begins.
Place* blank_place() {
  if (Place* const place = std::exchange(last_place, nullptr)) {
    PyObject_Init(reinterpret_cast<PyObject*>(place), place_type);
    return place;
  }
  auto* const place = PyObject_New(Place, place_type);
  if (place != nullptr) new (&place->path) std::string();
  return place;
}

void keep_or_free(Place* place) {
  PyTypeObject* const type = Py_TYPE(place);
  if (last_place == nullptr && place->path.capacity() <= kMostKeptPath) {
    last_place = place;
  } else {
    place->path.~basic_string();
    PyObject_Free(place);
  }
  Py_DECREF(type);
}
#endif

uint64_t next_place_number() {
#ifdef Py_GIL_DISABLED
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
#else
  static uint64_t last = 0;
  return ++last;
#endif
}

Place* new_place(const AnnotationStack& self, const void* owner, Place* outer, std::string_view name,
                 uint32_t details) {
  auto* const place = blank_place();
  if (place == nullptr) return nullptr;
  place->outer = nullptr;
  const py::object made = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(place));
  name = store::beginning_of(name, kLongestPath);
  if (const Place* const around = naming(outer)) {
    place->path.reserve(around->path.size() + 1 + name.size());
    place->path.assign(around->path).append(1, '/').append(name);
    place->path.resize(store::beginning_of(place->path, kLongestPath).size());
  } else {
    place->path.assign(name);
  }
  Py_XINCREF(outer);
  place->outer = outer;
  place->owner = owner;
  place->stack = self.number;
  place->number = next_place_number();
  place->details = details;
  new (&place->continued) std::atomic<int64_t>(-1);
  new (&place->is_silent) std::atomic<bool>(false);
  new (&place->is_left) std::atomic<bool>(false);
  Py_INCREF(place);
  return place;
}

// Deletes a place alone; returns the place around it, of which the caller gets the reference.
Place* delete_one(Place* place) {
  Place* const outer = place->outer;
  keep_or_free(place);
  return outer;
}

// A loop instead of a recursion, because a path may be deep.
void delete_place(PyObject* object) {
#ifdef Py_GIL_DISABLED
  // A number of references says nothing here. Where releasing the place around this one deletes that, too, the call
  // within leaves the next one for the loop of the outermost call.
  thread_local Place** left_for_outermost = nullptr;
  Place* place = delete_one(reinterpret_cast<Place*>(object));
  if (left_for_outermost != nullptr) {
    *left_for_outermost = place;
    return;
  }
  while (place != nullptr) {
    Place* next = nullptr;
    left_for_outermost = &next;
    Py_DECREF(place);
    left_for_outermost = nullptr;
    place = next;
  }
#else
  auto* place = reinterpret_cast<Place*>(object);
  while (place != nullptr) {
    place = delete_one(place);
    if (place != nullptr && Py_REFCNT(place) > 1) {
      Py_DECREF(place);
      return;
    }
  }
#endif
}

bool enter(AnnotationStack& self, const void* owner, PyObject* text, uint32_t details, PyFrameObject* caller) {
  if (self.has_ended) return true;
  if (PyObject* const on_first = self.on_first.load() == nullptr ? nullptr : self.on_first.exchange(nullptr)) {
    PyObject* const done = PyObject_CallNoArgs(on_first);
    Py_DECREF(on_first);
    if (done == nullptr) return false;
    Py_DECREF(done);
  }
  bool waits = false;
  std::string kept;
  std::string_view name;
  Place* outer = nullptr;
  bool is_other = false;
  if (!waits_inside(self, caller, &waits) || !utf8_of(text, &name, kept) || !current_place(self, &outer, &is_other)) {
    return false;
  }
  const py::object kept_outer = held(outer);
  const PushedHere here(self);
  std::vector<PushedPlace>& pushed = here.places();
  if (innermost(pushed, 0) != naming(outer)) {
    ++(pushed.empty() ? self.unfollowed : self.mixed);
    if (!resume(self, pushed, outer)) return false;
  }
  Place* const place = new_place(self, owner, outer, name, details);
  if (place == nullptr) return false;
  if (waits) {
    ++self.suspended;
    place->is_silent = true;
  }
  const py::object made = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(place));
  if (!waits && !push(self, pushed, place, place->details)) return false;
  auto token = py::reinterpret_steal<py::object>(set_place_for_now(place));
  if (!token) return false;
  if (!is_other && innermost(pushed, 0) == place) pushed.back().token = token.release().ptr();
  return true;
}

// Leaves the owner's innermost annotation of this context or, if there is none, of this thread: a generator may be
// closed in another context than the one in which it began. An annotation that was entered in another thread stays.
bool leave(AnnotationStack& self, const void* owner) {
  Place* place = nullptr;
  if (!current_place(self, &place)) return false;
  const py::object kept = held(place);
  const PushedHere here(self);
  std::vector<PushedPlace>& pushed = here.places();
  if (place != nullptr && place->owner == owner && !place->is_left) {
    Place* outer = place->outer;
    while (outer != nullptr && outer->is_left) outer = outer->outer;
    const py::object kept_outer = held(outer);
    py::object token;
    if (outer == place->outer && innermost(pushed, 0) == place) {
      token = py::reinterpret_steal<py::object>(std::exchange(pushed.back().token, nullptr));
    }
    return resume(self, pushed, outer, place) && (set_back(token) || set_place(outer));
  }
  Place* found = place;
  while (found != nullptr && (found->owner != owner || found->is_left)) found = found->outer;
  for (size_t i = pushed.size(); found == nullptr && i-- > 0;) {
    if (pushed[i].place->owner == owner && !pushed[i].place->is_left) found = pushed[i].place;
  }
  if (found == nullptr) return true;
  if (!pushed.empty() && pushed.back().place != found && !found->is_silent) ++self.mixed;
  found->is_left = true;
  return resume(self, pushed, place, nullptr, true);
}

PyObject* enter_method(PyObject* object, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 3 || !PyUnicode_Check(arguments[1])) {
    PyErr_SetString(PyExc_TypeError, "enter takes the owner, the name and the number of the details");
    return nullptr;
  }
  const unsigned long details = PyLong_AsUnsignedLong(arguments[2]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  PyFrameObject* const method = PyEval_GetFrame();  // annotate.__enter__
  const auto caller = py::reinterpret_steal<py::object>(
      reinterpret_cast<PyObject*>(method == nullptr ? nullptr : PyFrame_GetBack(method)));
  if (!enter(*reinterpret_cast<AnnotationStack*>(object), arguments[0], arguments[1], static_cast<uint32_t>(details),
             reinterpret_cast<PyFrameObject*>(caller.ptr()))) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* leave_method(PyObject* object, PyObject* owner) {
  if (!leave(*reinterpret_cast<AnnotationStack*>(object), owner)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* resume_place(PyObject* object, PyObject* value) {
  auto& self = *reinterpret_cast<AnnotationStack*>(object);
  Place* place = nullptr;
  if (Py_TYPE(value) == place_type && reinterpret_cast<Place*>(value)->stack == self.number) {
    place = reinterpret_cast<Place*>(value);
  }
  const PushedHere here(self);
  if (!resume(self, here.places(), place)) return nullptr;
  Py_RETURN_NONE;
}

// From now on no annotation is entered. The names of the calling thread are popped here, those of other threads when
// they leave their annotations.
PyObject* end(PyObject* object, PyObject* /*unused*/) {
  auto& self = *reinterpret_cast<AnnotationStack*>(object);
  self.has_ended = true;
  const PushedHere here(self);
  if (!resume(self, here.places(), nullptr) || !set_place(nullptr)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* detach(PyObject* object, PyObject* /*unused*/) {
  auto& self = *reinterpret_cast<AnnotationStack*>(object);
  self.has_ended = self.is_detached = true;
  Py_RETURN_NONE;
}

PyObject* counts(PyObject* object, PyObject* /*unused*/) {
  const auto& self = *reinterpret_cast<AnnotationStack*>(object);
  return Py_BuildValue("(KKK)", self.mixed.load(), self.unfollowed.load(), self.suspended.load());
}

py::object annotation_stack(const py::object& push, const py::object& pop, const py::object& calls,
                            const py::object& continued, const py::object& suspends, const py::object& on_first) {
  const AnnotationCalls* functions = nullptr;
  if (!calls.is_none()) {
    functions = static_cast<const AnnotationCalls*>(PyCapsule_GetPointer(calls.ptr(), kAnnotationCalls));
    if (functions == nullptr) throw py::error_already_set();
  }
  auto* const self = reinterpret_cast<AnnotationStack*>(stack_type->tp_alloc(stack_type, 0));
  if (self == nullptr) throw py::error_already_set();
  static std::atomic<uint64_t> number{0};
  self->number = ++number;
  self->calls = functions;
  self->push = push.inc_ref().ptr();
  self->pop = pop.inc_ref().ptr();
  self->capsule = calls.inc_ref().ptr();
  self->continued = continued.inc_ref().ptr();
  self->suspends = suspends.inc_ref().ptr();
  self->on_first = on_first.is_none() ? nullptr : on_first.inc_ref().ptr();
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(self));
}

int visit_stack(PyObject* object, visitproc visit, void* arg) {
  auto& self = *reinterpret_cast<AnnotationStack*>(object);
  for (PyObject* each : {self.push, self.pop, self.capsule, self.continued, self.suspends, self.on_first.load()})
    Py_VISIT(each);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

int clear_stack(PyObject* object) {
  auto& self = *reinterpret_cast<AnnotationStack*>(object);
  for (PyObject** each : {&self.push, &self.pop, &self.capsule, &self.continued, &self.suspends}) Py_CLEAR(*each);
  Py_XDECREF(self.on_first.exchange(nullptr));
  return 0;
}

void delete_stack(PyObject* object) {
  PyObject_GC_UnTrack(object);
  clear_stack(object);
  PyTypeObject* const type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

// A function for Python, through which no exception of C++ passes; those of memory become Python's.
template <auto* function>
struct Method;
template <typename... Arguments, PyObject* (*function)(Arguments...)>
struct Method<function> {
  static PyObject* call(Arguments... arguments) {
    try {
      return function(arguments...);
    } catch (const std::exception&) {
      return PyErr_NoMemory();
    }
  }
};

template <auto* function>
PyCFunction as_method() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&Method<function>::call));
}

PyTypeObject* make_type(PyType_Spec* spec) {
  PyObject* const type = PyType_FromSpec(spec);
  if (type == nullptr) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

#if PY_VERSION_HEX >= 0x030E0000
SharedReference* watching = nullptr;  // to an AnnotationStack

PyObject* resume_current(PyObject* object, PyObject* /*unused*/) {
  auto& self = *reinterpret_cast<AnnotationStack*>(object);
  Place* place = nullptr;
  if (!current_place(self, &place)) return nullptr;
  const PushedHere here(self);
  if (!resume(self, here.places(), place)) return nullptr;
  Py_RETURN_NONE;
}

int on_context_switch(PyContextEvent event, PyObject* /*context*/) {
  if (event != Py_CONTEXT_SWITCHED || !*watching) return 0;
  PyObject* const raised = PyErr_GetRaisedException();  // a context may be left by an exception
  if (const py::object stack = watching->get()) {       // held: `watching` may change during the call
    PyObject* const done = Method<resume_current>::call(stack.ptr(), nullptr);
    if (done == nullptr) PyErr_WriteUnraisable(stack.ptr());
    Py_XDECREF(done);
  }
  PyErr_SetRaisedException(raised);
  return 0;
}

void watch_contexts(const py::object& stack) {
  static const int watcher = PyContext_AddWatcher(on_context_switch);
  if (watcher < 0) throw py::error_already_set();
  watching->set(stack);
}
#endif

}  // namespace

bool is_annotation_stack(PyObject* object) { return Py_TYPE(object) == stack_type; }

bool enter_annotation(PyObject* stack, PyObject* owner, PyObject* name, PyFrameObject* caller) {
  try {
    return enter(*reinterpret_cast<AnnotationStack*>(stack), owner, name, 0, caller);
  } catch (const std::exception&) {
    PyErr_NoMemory();
    return false;
  }
}

bool leave_annotation(PyObject* stack, PyObject* owner) {
  try {
    return leave(*reinterpret_cast<AnnotationStack*>(stack), owner);
  } catch (const std::exception&) {
    PyErr_NoMemory();
    return false;
  }
}

void add_annotation_stack(py::module_& m) {
  static PyType_Slot place_slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(delete_place)},
      {Py_tp_doc, const_cast<char*>("An open annotation, linked to the annotation around it.")},
      {0, nullptr},
  };
  static PyType_Spec place_spec = {"collector._convert.AnnotationPlace", sizeof(Place), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, place_slots};
  place_type = make_type(&place_spec);
  static PyMethodDef methods[] = {
      {"enter", as_method<enter_method>(), METH_FASTCALL, "enter(self, owner, name, details)\n\nEnters an annotation."},
      {"leave", as_method<leave_method>(), METH_O, "leave(self, owner)\n\nLeaves the owner's innermost annotation."},
      {"resume", as_method<resume_place>(), METH_O,
       "resume(self, place)\n\nGives this thread the names of a value of annotation_place()."},
      {"end", as_method<end>(), METH_NOARGS,
       "end(self)\n\nEnters no annotation any more, and leaves the annotations of this thread."},
      {"detach", detach, METH_NOARGS, "detach(self)\n\nNever calls the source again."},
      {"counts", counts, METH_NOARGS, "counts(self)\n\n(mixed, unfollowed, suspended)."},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyType_Slot stack_slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(delete_stack)},
      {Py_tp_traverse, reinterpret_cast<void*>(visit_stack)},
      {Py_tp_clear, reinterpret_cast<void*>(clear_stack)},
      {Py_tp_methods, methods},
      {Py_tp_doc, const_cast<char*>("The open annotations of the threads and tasks of one session.")},
      {0, nullptr},
  };
  static PyType_Spec stack_spec = {"collector._convert.AnnotationStack", sizeof(AnnotationStack), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   stack_slots};
  stack_type = make_type(&stack_spec);
  place_variable = PyContextVar_New("annotation", Py_None);
  if (place_variable == nullptr) throw py::error_already_set();
  m.add_object("AnnotationStack", py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(stack_type)));
  m.def(
      "annotation_place", [] { return py::reinterpret_borrow<py::object>(place_variable); },
      "The context variable of the innermost annotation.");
  m.def("annotation_stack", &annotation_stack, py::arg("push"), py::arg("pop"), py::arg("calls"), py::arg("continued"),
        py::arg("suspends"), py::arg("on_first"), "The open annotations of a session's threads and tasks.");
#if PY_VERSION_HEX >= 0x030E0000
  watching = new SharedReference();
  m.def("watch_contexts", &watch_contexts, py::arg("stack"),
        "From CPython 3.14. Resumes the place of every context to which a thread switches; None ends this.");
#endif
}

}  // namespace collector::bindings
