// The picture as an SVG: one element that needs nothing outside itself, for files, web pages and notebooks.
#pragma once

#include <string>
#include <string_view>

#include "engine/view/figure.h"

namespace eagle::view {

// Readable on light and dark pages, with title and description for those who do not see it; an edge tells its
// kinds, planes and bytes under the pointer. Several of them may stand in one page.
std::string to_svg(const Figure& figure);

// What its <style> holds, the same in every picture, for pages that allow no other.
std::string svg_style_sheet();

// For text and attributes. `text` is UTF-8; what XML cannot hold becomes an escape.
std::string xml_escaped(std::string_view text);

}  // namespace eagle::view
