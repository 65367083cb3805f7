// Explanations in words, the same wherever they are shown.
#pragma once

#include <string>

#include "engine/graph/explain.h"

namespace eagle::view {

// Lines end in '\n'; names are safe to print.
std::string to_text(const graph::PairExplanation& pair);
std::string to_text(const graph::NodeExplanation& node);
std::string to_text(const graph::Explanation& explanation);

}  // namespace eagle::view
