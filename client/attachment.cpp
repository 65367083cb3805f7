#include "client/attachment.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/protocol.h"
#include "eagle/v1/service.grpc.pb.h"
#include "engine/run/report_message.h"
#include "proto/rpc_error.h"

namespace eagle {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How often a broken stream is tried again, and how long the end waits for the daemon to hear of it.
constexpr milliseconds retry_interval{200};
constexpr milliseconds patience{1'000};
// A peer whose machine is gone says nothing: it is asked after that much silence.
constexpr milliseconds keepalive{20'000};

StatusOr<std::string> contents(const char* what, const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file && text.find("-----BEGIN") != std::string::npos) return text;
  return Status(Reason::bad_value, std::string("connect: tls: ") + what + " '" + path +
                                       "' cannot be read, or is no PEM file; check the path");
}

// Why the stream could not be had, in words that lead somewhere.
Status unreachable(const Endpoint& endpoint, const ConnectOptions& options, const Status& said) {
  if (said.reason() != Reason::connection_lost) return said;
  std::string cure = "start one there with `eagled --listen " + endpoint.text() + "`";
  const std::string& text = said.message();
  if (text.find("resolution failed") != std::string::npos) {
    cure =
        "check the name of that machine, and that this one's name service knows it; an address will do, too";
  } else if (text.find("andshake") != std::string::npos || text.find("SSL") != std::string::npos ||
             text.find("TLS") != std::string::npos || text.find("ertificate") != std::string::npos) {
    cure =
        "is it the CA of the daemon's certificate that tls= names, is the certificate for this host and "
        "still good, and "
        "does the daemon want a certificate of yours, tls=(ca, cert, key)?";
  } else if (!options.tls && text.find("refused") == std::string::npos) {
    cure = "if the daemon speaks TLS, pass tls=";
  } else if (options.tls && text.find("refused") == std::string::npos) {
    cure =
        "does the daemon speak TLS there, does it believe the CA of your certificate, and is your "
        "certificate still "
        "good?";
  }
  return {Reason::no_daemon, "no daemon answers at " + endpoint.text() + " (" + text + "); " + cure};
}

}  // namespace

StatusOr<std::shared_ptr<grpc::Channel>> tcp_channel(const Endpoint& endpoint,
                                                     const ConnectOptions& options) {
  if (!options.token.empty() && !options.tls && !endpoint.loopback()) {
    return Status(Reason::bad_value,
                  "connect: the token would travel to " + endpoint.text() + " in the clear; pass tls= too");
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(keepalive.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(keepalive.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(keepalive.count()));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  // A channel of its own: a session that closes takes no other one's connection with it.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // What the environment says about proxies is not about this.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls) {
    const TlsOptions& tls = *options.tls;
    if (tls.certificate.empty() != tls.key.empty()) {
      return Status(Reason::bad_value,
                    "connect: tls: a certificate and its key come together; pass (ca, cert, key)");
    }
    grpc::SslCredentialsOptions files;
    EAGLE_ASSIGN_OR_RETURN(files.pem_root_certs, contents("the CA", tls.ca));
    EAGLE_ASSIGN_OR_RETURN(files.pem_cert_chain, contents("the certificate", tls.certificate));
    EAGLE_ASSIGN_OR_RETURN(files.pem_private_key, contents("the key", tls.key));
    credentials = grpc::SslCredentials(files);
    if (!tls.server_name.empty()) arguments.SetSslTargetNameOverride(tls.server_name);
  }
  return grpc::CreateCustomChannel("dns:///" + endpoint.target(), credentials, arguments);
}

class Attachment::State {
public:
  State(std::shared_ptr<grpc::Channel> channel, Endpoint its_endpoint, const ConnectOptions& options,
        std::string client_name)
      : endpoint_(std::move(its_endpoint)), options_(options), stub_(channel) {
    v1::HelloRequest& hello = *first_.mutable_open()->mutable_hello();
    hello.mutable_protocol()->set_min(protocol_min);
    hello.mutable_protocol()->set_max(protocol_max);
    hello.set_client_version(EAGLE_VERSION);
    hello.set_client_name(client_name);
    hello.set_traceparent(options.traceparent);
    first_.mutable_open()->set_lease_s(std::chrono::duration<double>(options.lease).count());
  }

  void start() {
    thread_ = std::thread([this] { work(); });
  }

  ~State() {
    shut_down();
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, patience, [this] { return ended_; }) && context_ != nullptr)
        context_->TryCancel();
    }
    if (thread_.joinable()) thread_.join();
  }

  Status wait_until_open(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [this] { return opened_ || ended_; })) {
      return {Reason::deadline, "the daemon at " + endpoint_.text() + " did not answer in time"};
    }
    return opened_ ? Status() : unreachable(endpoint_, options_, failure_);
  }

  bool wait_until_attached(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return stream_ != nullptr || ended_ || closing_; });
    return stream_ != nullptr;
  }

  void shut_down() {
    const std::scoped_lock lock(mutex_);
    if (closing_) return;
    closing_ = true;
    tell_until_ = Clock::now() + patience;
    if (stream_ != nullptr) {
      v1::AttachClientMessage message;
      message.mutable_close();
      stream_->Write(message, grpc::WriteOptions().set_last_message());
    } else if (context_ != nullptr && !opened_) {
      context_->TryCancel();
    }
    changed_.notify_all();
  }

  [[nodiscard]] Times times() const {
    const std::scoped_lock lock(mutex_);
    return times_;
  }
  void note_launch(std::uint64_t launch_id) { last_launch_.store(launch_id, std::memory_order_relaxed); }

  [[nodiscard]] bool alive() const {
    const std::scoped_lock lock(mutex_);
    return opened_ && !ended_ && !closing_;
  }
  [[nodiscard]] const OpenedSession& session() const { return session_; }  // set before anybody asks

private:
  using Stream = grpc::ClientReaderWriter<v1::AttachClientMessage, v1::AttachServerMessage>;

  void work() {
    std::optional<Clock::time_point> broken;  // when
    for (;;) {
      const Status outcome = attach_once();
      std::unique_lock lock(mutex_);
      // A daemon that says why does not want this session back. One that may not have heard of the close
      // would keep the session for its lease: it is told over another stream.
      const bool may_return = opened_ && wanted() && outcome.reason() == Reason::connection_lost;
      if (std::exchange(stood_, false)) broken.reset();
      if (!broken) broken = Clock::now();
      bool over = !may_return || Clock::now() - *broken > lease_;
      if (!over) {
        if (closing_) {
          changed_.wait_for(lock, retry_interval / 4);
        } else {
          changed_.wait_for(lock, retry_interval, [this] { return closing_; });
        }
        over = !wanted();  // the wait may have taken longer
      }
      if (over) {
        failure_ = outcome;
        ended_ = true;
        changed_.notify_all();
        return;
      }
    }
  }

  // With the mutex held.
  [[nodiscard]] bool wanted() const { return !closing_ || (!told_ && Clock::now() < tell_until_); }

  // Returns when the stream has broken, or could not be had.
  Status attach_once() {
    grpc::ClientContext context;
    if (!options_.token.empty()) context.AddMetadata("authorization", "Bearer " + options_.token);
    {
      const std::scoped_lock lock(mutex_);
      if (closing_ && !opened_) return {Reason::cancelled, "the session was closed"};
      // A machine that is gone says nothing for long.
      if (closing_) context.set_deadline(std::chrono::system_clock::now() + (tell_until_ - Clock::now()));
      context_ = &context;
    }
    first_.mutable_open()->set_last_launch_id(last_launch_.load(std::memory_order_relaxed));
    const std::unique_ptr<Stream> stream = stub_.Attach(&context);
    v1::AttachServerMessage answer;
    if (stream->Write(first_) && stream->Read(&answer) && answer.hello().secret().size() == secret_bytes) {
      if (stands(*stream, answer)) {
        while (stream->Read(&answer)) {
        }
      }
    }
    {
      const std::scoped_lock lock(mutex_);
      stream_ = nullptr;
    }
    const grpc::Status finished = stream->Finish();
    const Status status = rpc::status_of(finished, context);
    const std::scoped_lock lock(mutex_);
    context_ = nullptr;
    told_ = told_ || (closing_ && status.ok());
    // A stream that ends well was ended by a daemon that is going away.
    return status.ok() ? Status(Reason::connection_lost, "the daemon closed the connection") : status;
  }

  // False where it came too late.
  bool stands(Stream& stream, const v1::AttachServerMessage& answer) {
    const std::scoped_lock lock(mutex_);
    if (!opened_) {
      session_.id = answer.hello().session();
      session_.secret = answer.hello().secret();
      session_.server_version = answer.hello().server_version();
      session_.host = run::host_of(answer.hello().host());
      session_.survives = answer.hello().survives();
      session_.tells_begun = answer.hello().tells_begun();
      lease_ = milliseconds(static_cast<std::int64_t>(answer.lease_s() * 1000));
      // Another worker keeps it for so long at least.
      if (session_.survives) lease_ = std::max(lease_, survival_patience);
      first_.mutable_open()->set_resume(session_.secret);
      opened_ = true;
    }
    stood_ = true;
    ++times_.attached;
    const run::HostIdentity worker = run::host_of(answer.hello().host());
    if (times_.workers == 0 || worker.pid != worker_.pid) ++times_.workers;
    worker_ = worker;
    if (!closing_) {
      stream_ = &stream;
      changed_.notify_all();
      return true;
    }
    v1::AttachClientMessage message;
    message.mutable_close();
    stream.Write(message, grpc::WriteOptions().set_last_message());
    return true;  // its end is still to be read
  }

  const Endpoint endpoint_;
  const ConnectOptions options_;
  v1::Sessions::Stub stub_;
  v1::AttachClientMessage first_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  grpc::ClientContext* context_ = nullptr;  // of the stream that is wanted or stands
  Stream* stream_ = nullptr;                // that stands
  bool stood_ = false;                      // it did, since the last look
  bool opened_ = false;
  bool ended_ = false;
  bool closing_ = false;
  Clock::time_point tell_until_;  // once closing
  bool told_ = false;             // the daemon knows
  Status failure_;
  OpenedSession session_;
  Times times_;
  run::HostIdentity worker_;  // of the last stream
  std::atomic<std::uint64_t> last_launch_ = 0;
  milliseconds lease_{};
  std::thread thread_;
};

Attachment::Attachment(std::unique_ptr<State> state) : state_(std::move(state)) {}

Attachment::~Attachment() = default;

StatusOr<std::unique_ptr<Attachment>> Attachment::open(std::shared_ptr<grpc::Channel> channel,
                                                       const Endpoint& endpoint,
                                                       const ConnectOptions& options,
                                                       const std::string& client_name,
                                                       Clock::time_point deadline) {
  auto state = std::make_unique<State>(std::move(channel), endpoint, options, client_name);
  state->start();
  EAGLE_RETURN_IF_ERROR(state->wait_until_open(deadline));
  return std::unique_ptr<Attachment>(new Attachment(std::move(state)));
}

const OpenedSession& Attachment::session() const { return state_->session(); }
bool Attachment::alive() const { return state_->alive(); }
void Attachment::shut_down() { state_->shut_down(); }
Attachment::Times Attachment::times() const { return state_->times(); }
void Attachment::note_launch(std::uint64_t launch_id) { state_->note_launch(launch_id); }
bool Attachment::wait_until_attached(Clock::time_point deadline) {
  return state_->wait_until_attached(deadline);
}

}  // namespace eagle
