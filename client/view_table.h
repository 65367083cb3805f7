// ViewTable: collects the arrays of one description and gives each its plane and offset.
//
// Views of private memory cannot be placed until all of them are known (they may overlap), so `add` keeps
// the view's message and `finish` fills in what was open.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/describe.h"

namespace eagle::v1 {
class PlaneDeclaration;
class View;
}  // namespace eagle::v1

namespace eagle {

class ViewTable {
public:
  explicit ViewTable(const Host& host) : host_(&host) {}
  // By bytes alone: all memory is private, and nobody's.
  ViewTable() = default;

  // Fills `message`, which stays where it is until `finish`. `where` begins an error's text.
  Status add(const ArrayView& array, std::string_view where, v1::View& message);

  // Declares the planes, in order, through `declare` (which returns the next declaration to fill).
  void finish(const std::function<v1::PlaneDeclaration&()>& declare, Backing& backing);

private:
  struct SharedPlane {
    graph::PlaneId id;  // 0: a scratch plane
    std::uint64_t bytes = 0;
    std::string label;
    std::uint64_t begins = 0;  // its array, where that is alone in it
  };
  std::uint32_t index_of(const std::shared_ptr<const ScratchPlane>& plane);

  struct PrivateView {
    std::uintptr_t first = 0;  // bounding range of bytes
    std::uintptr_t last = 0;
    std::uintptr_t data = 0;  // element (0, 0, ...)
    v1::View* message = nullptr;
  };
  std::uint32_t index_of(const PlaneAddress& address);

  const Host* host_ = nullptr;
  std::vector<SharedPlane> shared_;
  struct HashOfId {
    std::size_t operator()(const graph::PlaneId& plane) const { return std::hash<std::uint64_t>()(plane.id); }
  };
  // Ids are used again, with another generation.
  std::unordered_map<graph::PlaneId, std::uint32_t, HashOfId> shared_index_;
  std::unordered_map<const ScratchPlane*, std::uint32_t> scratch_index_;
  std::vector<PrivateView> private_;
  std::vector<std::shared_ptr<const void>> keep_alive_;
  std::string device_;
};

}  // namespace eagle
