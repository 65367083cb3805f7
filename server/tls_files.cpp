#include "server/tls_files.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace eagle::server {
namespace {

std::string last_error() {
  const unsigned long error = ::ERR_get_error();
  ::ERR_clear_error();
  const char* reason = error == 0 ? nullptr : ::ERR_reason_error_string(error);
  return reason == nullptr ? "no reason given" : reason;
}

Status bad(const char* what, const std::string& path, const std::string& why) {
  return {Reason::bad_value, std::string(what) + " '" + path + "': " + why};
}

Status readable(const char* what, const std::string& path) {
  if (path.empty()) return bad(what, path, "no file is named; give one, or leave TLS out");
  if (::access(path.c_str(), R_OK) != 0) return bad(what, path, std::strerror(errno));
  return {};
}

}  // namespace

Status check(const TlsFiles& files) {
  if (!files.used()) {
    if (files.key.empty() && files.client_ca.empty()) return {};
    return {Reason::bad_value,
            "TLS has a key or a client CA, and no certificate of the daemon; give --tls-cert"};
  }
  EAGLE_RETURN_IF_ERROR(readable("--tls-cert", files.certificate));
  EAGLE_RETURN_IF_ERROR(readable("--tls-key", files.key));
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(::SSL_CTX_new(::TLS_server_method()),
                                                                    ::SSL_CTX_free);
  if (!context) return {Reason::internal, "SSL_CTX_new: " + last_error()};
  ::ERR_clear_error();
  if (::SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return bad("--tls-cert", files.certificate, "not a PEM certificate chain (" + last_error() + ")");
  }
  if (::SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      ::SSL_CTX_check_private_key(context.get()) != 1) {
    return bad("--tls-key", files.key,
               "not the PEM private key of '" + files.certificate + "' (" + last_error() + ")");
  }
  const X509* const certificate = ::SSL_CTX_get0_certificate(context.get());
  if (::X509_cmp_current_time(::X509_get0_notAfter(certificate)) < 0) {
    return bad("--tls-cert", files.certificate, "it has expired; no client would believe it");
  }
  struct stat key {};
  if (::stat(files.key.c_str(), &key) == 0 && (key.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0) {
    spdlog::warn("--tls-key '{}' can be read or written by others; chmod o-rw,g-w it", files.key);
  }
  if (files.client_ca.empty()) return {};
  EAGLE_RETURN_IF_ERROR(readable("--tls-client-ca", files.client_ca));
  if (::SSL_CTX_load_verify_locations(context.get(), files.client_ca.c_str(), nullptr) != 1) {
    return bad("--tls-client-ca", files.client_ca, "no PEM certificates (" + last_error() + ")");
  }
  return {};
}

}  // namespace eagle::server
