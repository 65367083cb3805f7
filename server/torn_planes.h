// Half written arrays of the planes that a launch or a run is bound to, as a description numbers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/graph/torn_reads.h"
#include "server/plane_store.h"

namespace eagle::server {

// A copy of the marks of some planes, numbered through.
struct TornMarks {
  std::vector<graph::TornMark> marks;  // the number is an index into `origins`
  struct Origin {
    Plane* plane = nullptr;
    std::uint64_t number = 0;
    std::string what;
  };
  std::vector<Origin> origins;

  [[nodiscard]] const std::string& what_of(std::uint64_t number) const { return origins[number].what; }
  // Drops these marks from their planes.
  void drop(std::span<const std::uint64_t> numbers) const;
};
// `planes`: by their index in the description; null for what is no plane of a session.
TornMarks torn_marks(std::span<Plane* const> planes);

// PLANE_TORN.
Status torn_read(std::string_view reader, std::string_view argument, std::string_view what);

// What was left half written, for the text of an error: the first few by name.
class TornText {
public:
  void add(std::string_view what);
  [[nodiscard]] std::string text() const;  // empty where there is nothing; else begins with "; "

private:
  static constexpr std::size_t most_named = 4;
  std::string named_;
  std::size_t count_ = 0;
};

}  // namespace eagle::server
