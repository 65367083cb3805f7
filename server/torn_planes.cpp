#include "server/torn_planes.h"

#include <set>

namespace eagle::server {

TornMarks torn_marks(std::span<Plane* const> planes) {
  TornMarks torn;
  for (std::uint32_t index = 0; index < planes.size(); ++index) {
    if (planes[index] == nullptr || !planes[index]->torn().any()) continue;
    for (plane::TornViews::Mark& mark : planes[index]->torn().marks()) {
      mark.view.plane = index;
      torn.marks.push_back({torn.origins.size(), std::move(mark.view)});
      torn.origins.push_back({planes[index], mark.number, std::move(mark.what)});
    }
  }
  return torn;
}

void TornMarks::drop(std::span<const std::uint64_t> numbers) const {
  for (const std::uint64_t number : numbers) {
    const Origin& origin = origins[number];
    origin.plane->torn().drop({&origin.number, 1});
  }
  std::set<Plane*> changed;
  for (const std::uint64_t number : numbers) changed.insert(origins[number].plane);
  for (Plane* const plane : changed) plane->write_down_torn();
}

Status torn_read(std::string_view reader, std::string_view argument, std::string_view what) {
  return {Reason::plane_torn, std::string(reader) + " reads '" + std::string(argument) +
                                  "', which was left half written as " + std::string(what) +
                                  "; write all of it in a node before, or say that it is fine as it is: "
                                  "session.accept(array)"};
}

void TornText::add(std::string_view what) {
  if (++count_ > most_named) return;
  if (count_ > 1) named_ += ", ";
  named_ += what;
}

std::string TornText::text() const {
  if (count_ == 0) return {};
  const std::string more = count_ > most_named ? " and " + std::to_string(count_ - most_named) + " more" : "";
  return "; left half written: " + named_ + more;
}

}  // namespace eagle::server
