#include "errors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/reason.h"

namespace eagle::python {
namespace {

// The class that each reason raises; index is the reason's number. Filled once, on import, and kept for
// the life of the process (classes outlive any module teardown).
std::vector<PyObject*>& classes() {
  static std::vector<PyObject*> table;
  return table;
}

nb::object make_class(std::string_view name, const nb::tuple& bases, const char* doc) {
  nb::dict members;
  members["__module__"] = "eagle";
  members["__doc__"] = doc;
  return nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type))(nb::str(name.data(), name.size()), bases,
                                                               members);
}

const ReasonInfo& row(std::size_t number) { return info(static_cast<Reason>(number)); }

std::size_t reason_count() { return static_cast<std::size_t>(Reason::internal) + 1; }

// Whether all reasons of a Python class have the same builtin, which the class can then derive from.
bool one_builtin(std::string_view python_class) {
  std::string_view builtin;
  for (std::size_t i = 1; i < reason_count(); ++i) {
    if (row(i).python_class != python_class) continue;
    if (!builtin.empty() && row(i).python_builtin != builtin) return false;
    builtin = row(i).python_builtin;
  }
  return true;
}

nb::object builtin_named(std::string_view name) {
  return nb::module_::import_("builtins").attr(std::string(name).c_str());
}

// The class of package eagle with this name, made and published on first use.
nb::object published_class(nb::module_& m, const ReasonInfo& reason) {
  const std::string name(reason.python_class);
  if (nb::hasattr(m, name.c_str())) return m.attr(name.c_str());
  const nb::object base = m.attr("EagleError");
  const nb::tuple bases = one_builtin(reason.python_class)
                              ? nb::make_tuple(base, builtin_named(reason.python_builtin))
                              : nb::make_tuple(base);
  const nb::object made = make_class(reason.python_class, bases, std::string(reason.meaning).c_str());
  m.attr(name.c_str()) = made;
  return made;
}

// A class shared by reasons with different builtins (EagleError itself, LimitExceeded) is raised as a
// subclass of it and of the builtin: "EagleError" and ValueError.
nb::object raised_class(nb::module_& m, const ReasonInfo& reason) {
  const nb::object published = published_class(m, reason);
  const nb::object builtin = builtin_named(reason.python_builtin);
  if (PyObject_IsSubclass(published.ptr(), builtin.ptr()) == 1) return published;
  for (std::size_t i = 0; i < classes().size(); ++i) {
    const nb::handle known(classes()[i]);
    if (row(i).python_class == reason.python_class && row(i).python_builtin == reason.python_builtin &&
        known.is_valid())
      return nb::borrow(known);
  }
  return make_class(reason.python_class, nb::make_tuple(published, builtin),
                    std::string(reason.meaning).c_str());
}

nb::object make_error(const Status& status) {
  const nb::handle type(classes().at(static_cast<std::size_t>(status.reason())));
  nb::object error = type(nb::str(status.message().data(), status.message().size()));
  const std::string_view reason = info(status.reason()).wire_name;
  const std::string_view code = name_of(status.code());
  error.attr("reason") = nb::str(reason.data(), reason.size());
  error.attr("code") = nb::str(code.data(), code.size());
  return error;
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    const nb::object made = make_error(error.status());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

nb::list reason_rows() {
  nb::list rows;
  for (std::size_t i = 1; i < reason_count(); ++i) {
    const auto text = [](std::string_view s) { return nb::str(s.data(), s.size()); };
    rows.append(nb::make_tuple(text(row(i).wire_name), text(name_of(row(i).code)), nb::handle(classes()[i]),
                               text(row(i).meaning)));
  }
  return rows;
}

}  // namespace

void bind_errors(nb::module_& m) {
  const nb::object base = make_class(
      "EagleError", nb::make_tuple(nb::handle(PyExc_Exception)),
      "Every refusal of this package: `.reason` is a stable name for programs, `.code` its canonical code.");
  base.attr("reason") = nb::none();
  base.attr("code") = nb::none();
  m.attr("EagleError") = base;
  classes().assign(1, nullptr);
  for (std::size_t i = 1; i < reason_count(); ++i)
    classes().push_back(raised_class(m, row(i)).release().ptr());
  nb::register_exception_translator(translate);

  m.def(
      "error",
      [](std::string_view reason, const std::string& message) {
        return make_error(Status(reason_named(reason), message));
      },
      nb::arg("reason"), nb::arg("message"));
  m.def("reasons", reason_rows);
}

}  // namespace eagle::python
