// Status and StatusOr: how every call of this project that can fail says so.
//
// A status is a canonical code (the numbers are gRPC's), a *reason* that programs may rely on (one of
// `engine/base/reason.h`) and a message for a person: it names the thing, what was expected, what was
// found, and the cure. Statuses are values; no exception crosses a module border.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/reason.h"

namespace eagle {

// Copies share their message: one that is ok costs what three words cost, and launches pass on dozens.
class [[nodiscard]] Status {
public:
  Status() = default;  // ok
  Status(Reason reason, std::string message)
      : code_(code_of(reason)),
        reason_(reason),
        message_(std::make_shared<const std::string>(std::move(message))) {}

  [[nodiscard]] bool ok() const { return code_ == Code::ok; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] Reason reason() const { return reason_; }
  [[nodiscard]] const std::string& message() const { return message_ ? *message_ : no_message(); }

  // The same status with `prefix` and ": " before the message: a caller adds where it happened.
  [[nodiscard]] Status within(std::string_view prefix) const {
    if (ok()) return {};
    return Status(reason_, std::string(prefix) + ": " + message());
  }
  // "INVALID_ARGUMENT (VIEW_OUTSIDE_PLANE): message", or "OK".
  [[nodiscard]] std::string to_string() const;

private:
  static const std::string& no_message();

  Code code_ = Code::ok;
  Reason reason_ = Reason::none;
  std::shared_ptr<const std::string> message_;  // null: empty
};

template <typename T>
class [[nodiscard]] StatusOr {
public:
  StatusOr(Status status) : status_(std::move(status)) {}         // NOLINT(*-explicit-*)
  StatusOr(T value) : value_(std::in_place, std::move(value)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const& { return status_; }
  [[nodiscard]] Status status() && { return std::move(status_); }
  // The value; calling it on an error is a bug and ends the program (std::bad_optional_access).
  T& value() & { return value_.value(); }
  const T& value() const& { return value_.value(); }
  T&& value() && { return std::move(value_).value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

private:
  Status status_;  // ok where there is a value
  std::optional<T> value_;
};

}  // namespace eagle

#define EAGLE_CONCAT_INNER(a, b) a##b
#define EAGLE_CONCAT(a, b) EAGLE_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression` is not ok.
#define EAGLE_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                           \
    if (::eagle::Status eagle_status_ = (expression); !eagle_status_.ok()) return eagle_status_; \
  } while (false)

// `EAGLE_ASSIGN_OR_RETURN(auto x, f())`: x becomes f()'s value, or the error is returned.
#define EAGLE_ASSIGN_OR_RETURN(declaration, expression) \
  EAGLE_ASSIGN_OR_RETURN_(EAGLE_CONCAT(eagle_result_, __LINE__), declaration, expression)
#define EAGLE_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.status();                      \
  declaration = std::move(result).value()
