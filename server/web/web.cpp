#include "server/web/web.h"

#include <arpa/inet.h>
#include <google/protobuf/util/json_util.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "eagle/v1/admin.pb.h"
#include "eagle/v1/graph.pb.h"
#include "eagle/v1/service.pb.h"
#include "eagle/v1/state.pb.h"
#include "engine/view/svg.h"
#include "server/access.h"
#include "server/json_text.h"
#include "server/summaries.h"
#include "server/web/assets.h"

namespace eagle::server {
namespace {

constexpr std::size_t most_target_bytes = 512;
constexpr const char* json_type = "application/json; charset=utf-8";

// "HOST:PORT" without its port; IPv6 addresses without their brackets.
std::string_view host_of(std::string_view field) {
  if (field.starts_with('[')) return field.substr(1, field.find(']') - 1);
  return field.substr(0, field.rfind(':'));
}

bool is_address(std::string_view host) {
  const std::string text(host);
  std::array<std::uint8_t, 16> bytes{};
  return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

// Nothing from elsewhere, no script but the page's own, no style but its own and that of pictures.
std::string security_policy() {
  const std::string style = view::svg_style_sheet();
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  ::SHA256(reinterpret_cast<const std::uint8_t*>(style.data()), style.size(), digest.data());
  std::array<std::uint8_t, 64> base64{};
  ::EVP_EncodeBlock(base64.data(), digest.data(), digest.size());
  return "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-" +
         std::string(reinterpret_cast<const char*>(base64.data())) +
         "'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

std::vector<std::pair<std::string_view, std::string_view>> arguments_of(std::string_view query) {
  std::vector<std::pair<std::string_view, std::string_view>> arguments;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos)
      arguments.emplace_back(one.substr(0, equals), one.substr(equals + 1));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
  }
  return arguments;
}

StatusOr<std::uint64_t> number_of(
    std::string_view name, const std::vector<std::pair<std::string_view, std::string_view>>& arguments) {
  for (const auto& [key, value] : arguments) {
    if (key != name) continue;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size()) return number;
  }
  return Status(Reason::bad_value, "expected " + std::string(name) + "=NUMBER in the query");
}

unsigned http_status(const Status& status) {
  switch (status.code()) {
    case Code::unauthenticated:
      return 401;
    case Code::permission_denied:
      return 403;
    case Code::not_found:
      return 404;
    case Code::invalid_argument:
      return 400;
    default:
      return 503;
  }
}

HttpAnswer refusal(unsigned status, const std::string& why) {
  return {status, json_type, "{\"error\":" + json_string(why) + "}\n"};
}

template <typename Messages>
std::string json_list(const Messages& messages) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  for (const auto& message : messages) {
    std::string one;
    if (!google::protobuf::util::MessageToJsonString(message, &one, options).ok()) continue;
    text += (text.empty() ? "" : ",") + one;
  }
  return "[" + text + "]";
}

// The lists of the page, each with how many are left out.
struct Lists {
  std::vector<v1::SessionSummary> sessions;
  std::vector<v1::GraphSummary> graphs;
  std::vector<v1::PlaneSummary> planes;  // the largest
  std::size_t all_sessions = 0, all_graphs = 0, all_planes = 0;

  void add(Daemon& daemon, Session& session) {
    if (all_sessions++ < Web::most_rows) describe(daemon, session, sessions.emplace_back());
    for (const auto& [id, graph] : session.graphs()) {
      if (all_graphs++ < Web::most_rows) describe(session, id, *graph, graphs.emplace_back());
    }
    for (const std::uint64_t id : session.dormant()) {
      if (all_graphs++ >= Web::most_rows) continue;
      const auto record = session.records().find(id);
      if (!record.ok()) continue;  // released meanwhile
      describe(session, id, record->graph->description(), record->graph->nodes(), graphs.emplace_back());
    }
    for (const auto& plane : session.planes().list()) {
      ++all_planes;
      if (planes.size() >= 2 * Web::most_rows) keep_largest();
      describe(session, *plane, planes.emplace_back());
    }
  }
  void keep_largest() {
    const auto before = [](const auto& a, const auto& b) {
      return std::tuple(b.bytes(), a.session(), a.plane().id()) <
             std::tuple(a.bytes(), b.session(), b.plane().id());
    };
    std::sort(planes.begin(), planes.end(), before);
    planes.resize(std::min(planes.size(), Web::most_rows));
  }
};

}  // namespace

Web::Web(Daemon& daemon, Surroundings surroundings, Access access, Peer peer)
    : daemon_(daemon),
      surroundings_(std::move(surroundings)),
      access_(std::move(access)),
      peer_(std::move(peer)),
      security_policy_(security_policy()) {}

HttpAnswer Web::answer(const HttpRequest& request) {
  const auto answered = [&]() -> HttpAnswer {
    const std::string_view host = host_of(request.host);
    const bool known = host == "localhost" || is_address(host) ||
                       std::find(access_.hosts.begin(), access_.hosts.end(), host) != access_.hosts.end();
    if (request.host.empty() || !known) {
      return refusal(421, "this dashboard answers to its address and to 'localhost', and was asked as '" +
                              loggable(request.host) + "'");
    }
    if (request.target.size() > most_target_bytes) return refusal(414, "expected a short path");
    const std::string_view target = request.target;
    const std::string_view path = target.substr(0, target.find('?'));
    for (const Asset& asset : assets()) {
      if (asset.path == path) return {200, std::string(asset.content_type), std::string(asset.text)};
    }
    if (!path.starts_with("/api/")) return refusal(404, "there is no such page");
    const Status allowed = may_look(request);
    if (!allowed.ok()) return refusal(http_status(allowed), allowed.message());
    return look(path, arguments_of(target.substr(std::min(target.size(), path.size() + 1))));
  };
  HttpAnswer answer = answered();
  answer.fields = {{"Content-Security-Policy", security_policy_},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cross-Origin-Resource-Policy", "same-origin"},
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cache-Control", "no-store"}};
  if (answer.status == 401) answer.fields.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

// A page of somebody else's may make a browser ask, and the kernel would vouch for the browser's user: such
// pages cannot read the answer, and get none.
Status Web::may_look(const HttpRequest& request) const {
  if (!request.sec_fetch_site.empty() && request.sec_fetch_site != "same-origin" &&
      request.sec_fetch_site != "none") {
    return {Reason::permission_denied, "another page asked; only the dashboard's own may"};
  }
  constexpr std::string_view bearer = "Bearer ";
  const std::string how =
      "; the dashboard is for the daemon's admins: open it as one of them on this machine, or with the token "
      "of one "
      "(eagled --new-token, `tokens`, `admins`)";
  Principal caller;
  if (!request.authorization.empty()) {
    const std::string_view said = request.authorization;
    eagle::server::Access access;
    access.tokens = access_.tokens;
    EAGLE_ASSIGN_OR_RETURN(
        caller, principal_of_token(access, said.starts_with(bearer) ? said.substr(bearer.size()) : ""));
  } else {
    const std::optional<uid_t> uid = peer_(request.socket);
    if (!uid) return {Reason::unauthenticated, "nobody vouches for whoever asks" + how};
    caller.uid = *uid;
  }
  if (daemon_.sessions().is_admin(caller)) return {};
  return {Reason::permission_denied, "'" + caller.text() + "' is not one of the daemon's admins" + how};
}

HttpAnswer Web::look(std::string_view path, const Arguments& arguments) {
  if (path == "/api/state") return {200, json_type, state()};
  const bool graph_asked = path == "/api/graph";
  if (!graph_asked && path != "/api/timeline") return refusal(404, "there is no such page");
  StatusOr<std::string> found = graph_asked ? graph(arguments) : timeline(arguments);
  if (!found.ok()) return refusal(http_status(found.status()), found.status().message());
  return {200, json_type, *std::move(found)};
}

const std::string& Web::state() {
  const auto now = std::chrono::steady_clock::now();
  if (!state_.empty() && now - state_at_ < fresh) return state_;
  Lists lists;
  for (const auto& [id, session] : daemon_.sessions().by_id()) lists.add(daemon_, *session);
  lists.keep_largest();
  v1::InfoReply info;
  describe(daemon_, surroundings_, "", true, info);
  std::string all = json_list(std::array{info});
  state_ = "{\"info\":" + all.substr(1, all.size() - 2) +
           ",\"running\":" + json_string(daemon_.executor().running()) +
           ",\"all_sessions\":" + std::to_string(lists.all_sessions) +
           ",\"all_graphs\":" + std::to_string(lists.all_graphs) +
           ",\"all_planes\":" + std::to_string(lists.all_planes) +
           ",\"sessions\":" + json_list(lists.sessions) + ",\"graphs\":" + json_list(lists.graphs) +
           ",\"planes\":" + json_list(lists.planes) + "}\n";
  state_at_ = now;
  return state_;
}

// Nothing is built for being looked at.
StatusOr<std::string> Web::graph(const Arguments& arguments) {
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t owner, number_of("session", arguments));
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t id, number_of("graph", arguments));
  const auto sessions = daemon_.sessions().by_id();
  const auto session = sessions.find(owner);
  if (session == sessions.end()) {
    return Status(Reason::unknown_graph, "there is no session " + std::to_string(owner) + " any more");
  }
  if (session->second->dormant(id)) {
    EAGLE_ASSIGN_OR_RETURN(const auto record, session->second->records().find(id));
    return graph_json(record.graph->description());
  }
  EAGLE_ASSIGN_OR_RETURN(const auto loaded, session->second->graph(id));
  return graph_json(*loaded, drawings_.of(loaded));
}

StatusOr<std::string> Web::timeline(const Arguments& arguments) {
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t owner, number_of("session", arguments));
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t id, number_of("graph", arguments));
  std::uint64_t events = 0, forgotten = 0;
  return daemon_.timeline(owner, id, events, forgotten);
}

}  // namespace eagle::server
