#include "server/page/page.h"

#include <openssl/sha.h>

#include <array>
#include <string_view>

#include "absl/strings/escaping.h"
#include "server/http/http_replies.h"
#include "server/page/page_sources.h"

namespace hippodrome {
namespace {

// Base64 of the SHA-256, as policies and integrity attributes write it.
std::string Digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return absl::Base64Escape(std::string(hash.begin(), hash.end()));
}

void Put(std::string_view part, std::string_view place, std::string& page) {
  page.replace(page.find(place), place.size(), part);
}

// The script, which comes last, first: so no place is looked for in what was put in.
std::string Join() {
  std::string page(kPageHtml);
  Put(kPageScript, "{{script}}", page);
  Put(kPageStyle, "{{style}}", page);
  return page;
}

// The icon alone is an image, and lies in the page. Nobody may put the page into a frame, where it
// could be made to look like something else.
std::string Policy() {
  return "default-src 'none'; script-src 'sha256-" + Digest(kPageScript) + "'; style-src 'sha256-" +
         Digest(kPageStyle) +
         "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'; require-trusted-types-for 'script'";
}

// RFC 9110 13.1.2: a list of tags, each perhaps weak, or "*".
bool Has(const HttpRequest& request, const std::string& tag) {
  const auto known = request.headers.find("if-none-match");
  return known != request.headers.end() &&
         (known->second == "*" || known->second.find(tag) != std::string::npos);
}

}  // namespace

Page::Page() : body_(Join()), policy_(Policy()), tag_("\"" + Digest(body_) + "\"") {}

HttpReply Page::Answer(const HttpRequest& request) const {
  HttpReply reply;
  HttpResponse& response = reply.response;
  response.content_type = "text/html; charset=utf-8";
  response.headers = {
      {"Content-Security-Policy", policy_},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-cache"},  // asked for each time; the tag spares sending it
      {"ETag", tag_},
  };
  if (Has(request, tag_)) {
    response.status = 304;
  } else {
    response.body = body_;
  }
  return reply;
}

}  // namespace hippodrome
