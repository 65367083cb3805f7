#include "tests/conformance/host_registry.h"

#include <map>
#include <utility>

namespace eagle::conformance {
namespace {

std::map<std::string, HostUnderTest>& hosts() {
  static std::map<std::string, HostUnderTest> hosts;
  return hosts;
}

}  // namespace

std::vector<HostUnderTest> registered_hosts() {
  std::vector<HostUnderTest> result;
  for (const auto& [name, host] : hosts()) result.push_back(host);
  return result;
}

HostRegistration::HostRegistration(HostUnderTest host) {
  std::string name = host.name;
  hosts().emplace(std::move(name), std::move(host));
}

}  // namespace eagle::conformance
