// Copying what one view sees to where another one does.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/plane/view.h"

namespace eagle::plane {

// Element by element, on the calling thread. Both views have passed `check`, are of one shape and item size,
// and share no byte. The addresses are those of their planes.
void copy_view(const View& from, const std::byte* from_plane, const View& to, std::byte* to_plane);

// The same in parts of at most `copy_part_bytes`, or of one element: `given_up` is asked before each of them
// whether anybody still wants it. False: nobody did, and the rest was left.
constexpr std::int64_t copy_part_bytes = std::int64_t{4} << 20;
bool copy_view(const View& from, const std::byte* from_plane, const View& to, std::byte* to_plane,
               const std::function<bool()>& given_up);

}  // namespace eagle::plane
