// Where in a user's source an op is, and what is said of it. Inside of this folder alone.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/names.h"

namespace eagle::kernel::diff {

// " (at step.py:12:9)", or nothing where it is not known.
inline std::string place_of(const Kernel& kernel, const Op& op) {
  if (op.location.line == 0 || op.location.file >= kernel.source_files.size()) return "";
  return " (at " + escaped(kernel.source_files[op.location.file], '\0') + ":" +
         std::to_string(op.location.line) + ":" + std::to_string(op.location.column) + ")";
}

// Whether a primitive has no such rule.
inline bool is_absent(const Region& rule) {
  return rule.arguments.empty() && rule.ops.empty() && rule.yields.empty();
}

inline Status missing_rule(const Kernel& kernel, const Op& op, std::string_view direction) {
  const std::string wanted(direction);
  return {Reason::bad_value, wanted + ": kernel " + quote_name(kernel.name) +
                                 " uses a primitive that has no " + wanted + " rule" + place_of(kernel, op) +
                                 "; give it one: eagle.primitive(name, " + wanted + "=...)"};
}

}  // namespace eagle::kernel::diff
