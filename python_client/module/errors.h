// Errors: a Status of the client library becomes the Python exception that the table of reasons names.
//
// Every class derives from EagleError and from the builtin a Python user expects; instances carry
// `.reason` ("WRONG_SHAPE") and `.code` ("INVALID_ARGUMENT").
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <utility>

#include "engine/base/status.h"

namespace eagle::python {

namespace nb = nanobind;

// The only C++ exception that this module throws; translated where Python called in.
class StatusError : public std::exception {
public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  [[nodiscard]] const char* what() const noexcept override { return status_.message().c_str(); }
  [[nodiscard]] const Status& status() const { return status_; }

private:
  Status status_;
};

inline void check(const Status& status) {
  if (!status.ok()) throw StatusError(status);
}
template <typename T>
T take(StatusOr<T> result) {
  if (!result.ok()) throw StatusError(result.status());
  return std::move(result).value();
}

// Adds the exception classes, `error(reason, message)` and `reasons()` to the module.
void bind_errors(nb::module_& m);

}  // namespace eagle::python
