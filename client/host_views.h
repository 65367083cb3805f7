// What the callables of a description touch, for hosts whose arrays are copies: what they read is fetched
// before, and what they write sent after. For the .cpp files of this folder only: it brings gRPC's headers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "client/remote_connection.h"
#include "engine/base/status.h"
#include "engine/plane/packed.h"

namespace eagle::v1 {
class GraphDescription;
class HostNode;
class Node;
class RunDescription;
}  // namespace eagle::v1

namespace eagle {

class HostViews {
public:
  HostViews() = default;
  // Of the host nodes, by the number of their call. Views of private memory are the caller's own anyway.
  HostViews(Connection& connection, const v1::GraphDescription& description);
  HostViews(Connection& connection, const v1::RunDescription& description);
  // No callable touches memory that is a copy.
  [[nodiscard]] bool empty() const { return calls_.empty(); }

  // Both on the thread that calls. CANCELLED where `progress` says so.
  Status fetch_reads(Connection& connection, std::uint32_t call, const TransferProgress& progress) const;
  Status send_writes(Connection& connection, std::uint32_t call, const TransferProgress& progress) const;

private:
  struct One {
    v1::PlaneSlice slice;
    std::byte* plane = nullptr;  // its copy in this process
    plane::Packed packed;
  };
  struct Call {
    std::vector<One> reads;
    std::vector<One> writes;
  };
  template <typename Description>
  void add(Connection& connection, const Description& description, const v1::HostNode& node);
  template <typename Description>
  void add(Connection& connection, const Description& description, const v1::Node& node);
  template <typename Description, typename Stages>
  void add_stages(Connection& connection, const Description& description, const Stages& stages);

  std::map<std::uint32_t, Call> calls_;
};

}  // namespace eagle
