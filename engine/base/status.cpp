#include "engine/base/status.h"

#include <array>

namespace eagle {
namespace {

constexpr std::array reasons = {ReasonInfo{Reason::none, "", Code::ok, "", "", ""},
#define EAGLE_REASON_ROW(name, wire, code, python_class, builtin, meaning) \
  ReasonInfo{Reason::name, #wire, Code::code, #python_class, #builtin, meaning},
                                EAGLE_REASONS(EAGLE_REASON_ROW)
#undef EAGLE_REASON_ROW
};

constexpr std::array<std::string_view, 17> code_names = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

const ReasonInfo& info(Reason reason) { return reasons.at(static_cast<std::size_t>(reason)); }

Code code_of(Reason reason) { return info(reason).code; }

Reason reason_named(std::string_view wire_name) {
  for (const ReasonInfo& row : reasons) {
    if (row.reason != Reason::none && row.wire_name == wire_name) return row.reason;
  }
  return Reason::internal;
}

std::string_view name_of(Code code) { return code_names.at(static_cast<std::size_t>(code)); }

const std::string& Status::no_message() {
  static const std::string& none = *new std::string;  // also for what is told as the process ends
  return none;
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  return std::string(name_of(code_)) + " (" + std::string(info(reason_).wire_name) + "): " + message();
}

}  // namespace eagle
