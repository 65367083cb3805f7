// What doctor has to say about one thing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eagle::doctor {

enum class Severity : std::uint8_t {
  fine,     // as it should be
  note,     // worth knowing; nothing to do
  warning,  // works, but will not for long, for large work, or for everybody
  problem,  // something does not work
};
std::string_view name_of(Severity severity);  // "ok", "note", "warning", "problem"

struct Finding {
  std::string id;  // stable, for programs: "limits.nofile" (docs/manual/eaglectl.md lists them)
  Severity severity = Severity::fine;
  std::string what;  // that was found, with its number
  std::string cure;  // what to do; empty where there is nothing to
};
using Findings = std::vector<Finding>;

// The worst of them; `fine` for none.
Severity worst(const Findings& findings);

}  // namespace eagle::doctor
