// The result of a run as a message, and back.
#pragma once

#include "engine/base/status.h"
#include "engine/step/simulation.h"

namespace eagle::v1 {
class RunResult;
}

namespace eagle::step {

void describe(const RunResult& result, v1::RunResult& message);
StatusOr<RunResult> result_of(const v1::RunResult& message);  // BAD_MESSAGE

}  // namespace eagle::step
