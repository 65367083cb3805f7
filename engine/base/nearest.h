// Names that are nearly right: what a refusal of an unknown name says besides.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eagle {

// How many bytes have to be changed, put in or left out to make one word of another.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of the candidates, the first of several; null where there is none. At most 4,096 bytes of each
// are looked at.
const std::string* nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace eagle
