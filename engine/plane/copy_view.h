// Copying what one view sees to where another one does.
#pragma once

#include <cstddef>

#include "engine/plane/view.h"

namespace eagle::plane {

// Element by element, on the calling thread. Both views have passed `check`, are of one shape and item size,
// and share no byte. The addresses are those of their planes.
void copy_view(const View& from, const std::byte* from_plane, const View& to, std::byte* to_plane);

}  // namespace eagle::plane
