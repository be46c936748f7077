#include "tests/testing/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdint>

#include "tests/testing/temporary_directory.h"

namespace hippodrome {
namespace {

using KeyPointer = std::shared_ptr<EVP_PKEY>;
using CertificatePointer = std::shared_ptr<X509>;

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

std::string ToPem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  return Text(bio);
}

std::string ToPem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return Text(bio);
}

void Extend(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

CertificatePointer NewCertificate(const std::string& name, EVP_PKEY* key, std::chrono::hours from,
                                  std::chrono::hours until) {
  const CertificatePointer certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1);
  const auto seconds = [](std::chrono::hours hours) {
    return static_cast<long>(std::chrono::seconds(hours).count());
  };
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), seconds(from));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds(until));
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

KeyPointer NewKey() { return KeyPointer(EVP_EC_gen("P-256"), EVP_PKEY_free); }

void Sign(X509* certificate, X509* issuer, EVP_PKEY* key) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  X509_sign(certificate, key, EVP_sha256());
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name, const TestAuthority* parent)
    : key_(NewKey()),
      certificate_(
          NewCertificate(name, key_.get(), std::chrono::hours(-48), std::chrono::hours(48))) {
  X509* issuer = parent == nullptr ? certificate_.get() : parent->certificate_.get();
  Extend(certificate_.get(), issuer, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate_.get(), issuer, NID_key_usage, "critical,keyCertSign");
  Sign(certificate_.get(), issuer, parent == nullptr ? key_.get() : parent->key_.get());
  pem_ = ToPem(certificate_.get());
}

TestCertificate TestAuthority::Issue(const std::string& name, std::chrono::hours from,
                                     std::chrono::hours until) const {
  const KeyPointer key = NewKey();
  const CertificatePointer certificate = NewCertificate(name, key.get(), from, until);
  Extend(certificate.get(), certificate_.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  Sign(certificate.get(), certificate_.get(), key_.get());
  return {ToPem(certificate.get()), ToPem(key.get())};
}

TlsPeers NewTlsPeers() {
  const TestAuthority authority("authority");
  const TestCertificate own = authority.Issue("server");
  const TemporaryDirectory directory;
  const std::string certificate = directory.Write("certificate", own.certificate);
  const std::string key = directory.Write("key", own.key);
  const std::string ca = directory.Write("ca", authority.certificate());
  return {TlsFiles::Open({certificate, key, ""}).value(), NewClientContext({.ca = ca}).value()};
}

}  // namespace hippodrome
