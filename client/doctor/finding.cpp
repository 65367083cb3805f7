#include "client/doctor/finding.h"

#include <algorithm>

namespace eagle::doctor {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::fine:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::problem:
      return "problem";
  }
  return "?";
}

Severity worst(const Findings& findings) {
  Severity severity = Severity::fine;
  for (const Finding& finding : findings) severity = std::max(severity, finding.severity);
  return severity;
}

}  // namespace eagle::doctor
