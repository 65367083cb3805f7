// Status and StatusOr: how every call of this project that can fail says so.
//
// A status is a canonical code (the numbers are gRPC's), a *reason* that programs may rely on (one of
// `engine/base/reason.h`) and a message for a person: it names the thing, what was expected, what was
// found, and the cure. Statuses are values; no exception crosses a module border.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/base/reason.h"

namespace eagle {

class [[nodiscard]] Status {
public:
  Status() = default;  // ok
  Status(Reason reason, std::string message)
      : code_(code_of(reason)), reason_(reason), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == Code::ok; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] Reason reason() const { return reason_; }
  [[nodiscard]] const std::string& message() const { return message_; }

  // The same status with `prefix` and ": " before the message: a caller adds where it happened.
  [[nodiscard]] Status within(std::string_view prefix) const {
    if (ok()) return {};
    return Status(reason_, std::string(prefix) + ": " + message_);
  }
  // "INVALID_ARGUMENT (VIEW_OUTSIDE_PLANE): message", or "OK".
  [[nodiscard]] std::string to_string() const;

private:
  Code code_ = Code::ok;
  Reason reason_ = Reason::none;
  std::string message_;
};

template <typename T>
class [[nodiscard]] StatusOr {
public:
  StatusOr(Status status) : state_(std::in_place_index<0>, std::move(status)) {}  // NOLINT(*-explicit-*)
  StatusOr(T value) : state_(std::in_place_index<1>, std::move(value)) {}         // NOLINT(*-explicit-*)

  [[nodiscard]] bool ok() const { return state_.index() == 1; }
  [[nodiscard]] Status status() const { return ok() ? Status() : std::get<0>(state_); }
  // The value; calling it on an error is a bug and ends the program (std::bad_variant_access).
  T& value() & { return std::get<1>(state_); }
  const T& value() const& { return std::get<1>(state_); }
  T&& value() && { return std::get<1>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

private:
  std::variant<Status, T> state_;
};

}  // namespace eagle

#define EAGLE_CONCAT_INNER(a, b) a##b
#define EAGLE_CONCAT(a, b) EAGLE_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression` is not ok.
#define EAGLE_RETURN_IF_ERROR(expression)                          \
  do {                                                             \
    if (::eagle::Status eagle_status_ = (expression); !eagle_status_.ok()) return eagle_status_; \
  } while (false)

// `EAGLE_ASSIGN_OR_RETURN(auto x, f())`: x becomes f()'s value, or the error is returned.
#define EAGLE_ASSIGN_OR_RETURN(declaration, expression) \
  EAGLE_ASSIGN_OR_RETURN_(EAGLE_CONCAT(eagle_result_, __LINE__), declaration, expression)
#define EAGLE_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.status();                      \
  declaration = std::move(result).value()
