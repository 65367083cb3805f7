// HostAdmin over the connection of a session.
#pragma once

#include <memory>

#include "client/host_admin.h"

namespace eagle {

class Connection;

std::unique_ptr<HostAdmin> remote_admin(std::shared_ptr<Connection> connection);

}  // namespace eagle
