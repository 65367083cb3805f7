// Transfers: values of planes over the wire, for sessions whose arrays are copies.
// For the .cpp files of this folder only: it brings gRPC's headers.
//
// A transfer is cut into pieces, so that its size knows no bound and, when the connection breaks, it goes on
// where it was once that is back, for as long as the session's lease lasts. Each call waits as long as bytes
// move, and ends with the session.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "client/remote_connection.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"

namespace eagle {

// `slice` is one whose packed form has as many bytes as are given. Errors begin with `operation`.
Status fetch_slice(Connection& connection, std::string_view operation, const v1::PlaneSlice& slice,
                   std::span<std::byte> into, const TransferProgress& progress);
Status send_slice(Connection& connection, std::string_view operation, const v1::PlaneSlice& slice,
                  std::span<const std::byte> from, const TransferProgress& progress);
Status fill_slice(Connection& connection, const v1::PlaneSlice& slice, std::uint64_t bytes,
                  std::span<const std::byte> element);

}  // namespace eagle
