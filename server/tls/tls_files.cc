#include "server/tls/tls_files.h"

#include <array>
#include <ctime>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

using Time = std::chrono::system_clock::time_point;

std::string DateText(Time time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

bool SameFiles(const TlsIdentity& a, const TlsIdentity& b) {
  return a.certificates == b.certificates && a.key == b.key && a.client_ca == b.client_ca;
}

// "" where they are valid.
std::string CheckDates(const std::string& path, const TlsIdentity& identity, Time now) {
  const TlsDates dates = DatesOf(identity.http);
  if (now > dates.until) return path + ": a certificate expired at " + DateText(dates.until);
  if (now < dates.from) return path + ": a certificate is not valid before " + DateText(dates.from);
  return "";
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsFiles>> TlsFiles::Open(const TlsOptions& options) {
  std::shared_ptr<TlsFiles> files(new TlsFiles(options));
  HIPPODROME_ASSIGN_OR_RETURN(files->current_, files->Read());
  return files;
}

absl::StatusOr<std::shared_ptr<const TlsIdentity>> TlsFiles::Read() const {
  HIPPODROME_ASSIGN_OR_RETURN(PemFile certificates,
                              ReadPemFile("certificate", options_.certificate));
  HIPPODROME_ASSIGN_OR_RETURN(PemFile key, ReadPemFile("private key", options_.key));
  PemFile client_ca;
  if (!options_.client_ca.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(client_ca,
                                ReadPemFile("clients' certificates", options_.client_ca));
  }
  auto identity = std::make_shared<TlsIdentity>();
  HIPPODROME_ASSIGN_OR_RETURN(identity->http, NewServerContext(certificates, key, client_ca));
  identity->expires = DatesOf(identity->http).until;
  identity->certificates = std::move(certificates.text);
  identity->key = std::move(key.text);
  identity->client_ca = std::move(client_ca.text);
  return identity;
}

absl::StatusOr<std::function<void()>> TlsFiles::Prepare() {
  HIPPODROME_ASSIGN_OR_RETURN(std::shared_ptr<const TlsIdentity> identity, Read());
  if (SameFiles(*identity, *current())) return nullptr;
  const std::string wrong =
      CheckDates(options_.certificate, *identity, std::chrono::system_clock::now());
  if (!wrong.empty()) return FailedPrecondition(wrong);
  return [this, identity = std::move(identity)]() mutable {
    std::lock_guard lock(mutex_);
    current_.swap(identity);
  };
}

std::shared_ptr<const TlsIdentity> TlsFiles::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

std::string TlsFiles::Warning(Time now) const {
  return CheckDates(options_.certificate, *current(), now);
}

}  // namespace hippodrome
