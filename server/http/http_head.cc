#include "server/http/http_head.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"

namespace hippodrome {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

using Outcome = std::optional<HttpRefusal>;

Outcome Bad(std::string message) {
  return HttpRefusal{400, "bad_request", "this is not HTTP/1.1: " + std::move(message)};
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  absl::AsciiStrToLower(&lower);
  return lower;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// RFC 9110, 5.6.2.
bool IsToken(std::string_view text) {
  const auto is_token_char = [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// Visible ASCII, less what no URI holds.
bool IsTarget(std::string_view text) {
  const auto is_target_char = [](unsigned char c) {
    return c > 0x20 && c < 0x7f &&
           std::string_view("\"#<>\\^`{|}").find(c) == std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_target_char);
}

// A host and maybe a port; empty where a client has none to name.
bool IsHost(std::string_view text) {
  const auto is_host_char = [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           std::string_view("-._~%!$&'()*+,;=:[]").find(c) != std::string_view::npos;
  };
  return std::all_of(text.begin(), text.end(), is_host_char);
}

// Removes and returns what stands before `separator`, or nothing where there is none.
std::optional<std::string_view> TakeUntil(std::string_view& text, std::string_view separator) {
  const size_t end = text.find(separator);
  if (end == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + separator.size());
  return taken;
}

Outcome ReadVersion(std::string_view text, RequestHead& head) {
  if (text == "HTTP/1.1" || text == "HTTP/1.0") {
    head.http11 = text.back() == '1';
    return std::nullopt;
  }
  const bool other = text.size() == 8 && text.starts_with("HTTP/") &&
                     absl::ascii_isdigit(text[5]) && text[6] == '.' && absl::ascii_isdigit(text[7]);
  if (!other) return Bad("the version is wrong");
  return HttpRefusal{505, "http_version", "expected HTTP/1.1 or HTTP/1.0"};
}

// The path of a target: as it is, or behind the authority of an absolute one. "*" stands for none.
Outcome ReadRequestTarget(std::string_view target, RequestHead& head) {
  if (target.size() > kMaxTargetBytes) {
    return HttpRefusal{414, "target_too_long",
                       "the target is longer than " + std::to_string(kMaxTargetBytes) + " bytes"};
  }
  if (!IsTarget(target)) return Bad("the target is wrong");
  const std::string scheme = Lower(target.substr(0, 8));
  if (scheme.starts_with("http://") || scheme == "https://") {
    target.remove_prefix(target.find("//") + 2);
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    const std::string_view authority = target.substr(0, end);
    if (authority.empty() || !IsHost(authority)) return Bad("the target's host is wrong");
    target.remove_prefix(end);
    head.path = target.starts_with('/') ? "" : "/";
  } else if (!target.starts_with('/') && !(target == "*" && head.method == "OPTIONS")) {
    return Bad("the target is neither a path nor a URL");
  }
  const size_t query = target.find('?');
  head.path += target.substr(0, query);
  if (query != std::string_view::npos) head.query = std::string(target.substr(query + 1));
  return std::nullopt;
}

Outcome ReadRequestLine(std::string_view line, RequestHead& head) {
  const auto method = TakeUntil(line, " ");
  if (!method || !IsToken(*method)) return Bad("the method is wrong");
  const auto target = TakeUntil(line, " ");
  if (!target) return Bad("the request line has no version");
  head.method = std::string(*method);
  if (Outcome refusal = ReadVersion(line, head)) return refusal;
  return ReadRequestTarget(*target, head);
}

Outcome ReadField(std::string_view line, RequestHead& head) {
  if (line.front() == ' ' || line.front() == '\t') return Bad("a field is folded");
  if (head.fields.size() == kMaxFields) {
    return HttpRefusal{431, "headers_too_large",
                       "there are more than " + std::to_string(kMaxFields) + " header fields"};
  }
  const auto name = TakeUntil(line, ":");
  if (!name || !IsToken(*name)) return Bad("the name of a field is wrong");
  if (!IsFieldText(line)) return Bad("a field holds a control character");
  head.fields.emplace_back(Lower(*name), Trim(line));
  return std::nullopt;
}

// All fields of that name.
std::vector<std::string_view> FindAll(const RequestHead& head, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [field, value] : head.fields) {
    if (field == name) values.push_back(value);
  }
  return values;
}

// Whether the lists in `values` hold `token`.
bool Lists(const std::vector<std::string_view>& values, std::string_view token) {
  for (std::string_view value : values) {
    for (auto item = TakeUntil(value, ","); item; item = TakeUntil(value, ",")) {
      if (Lower(Trim(*item)) == token) return true;
    }
    if (Lower(Trim(value)) == token) return true;
  }
  return false;
}

Outcome CheckHost(const RequestHead& head) {
  const std::vector<std::string_view> hosts = FindAll(head, "host");
  if (hosts.size() > 1) return Bad("there are several Host fields");
  if (hosts.empty() && head.http11) return Bad("there is no Host field");
  if (!hosts.empty() && !IsHost(hosts[0])) return Bad("the Host field is wrong");
  return std::nullopt;
}

Outcome ReadContentLength(std::string_view digits, RequestHead& head) {
  const bool number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (!number) return Bad("Content-Length is not a number");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char c : digits) {
    const int64_t digit = c - '0';
    head.content_length =
        head.content_length > (kMost - digit) / 10 ? kMost : head.content_length * 10 + digit;
  }
  return std::nullopt;
}

// How the body is sent. Wherever two fields could tell different ends, there is none to trust.
Outcome ReadFraming(RequestHead& head) {
  const std::vector<std::string_view> lengths = FindAll(head, "content-length");
  const std::vector<std::string_view> codings = FindAll(head, "transfer-encoding");
  if (lengths.size() + codings.size() > 1) {
    return Bad("there is more than one of Content-Length and Transfer-Encoding");
  }
  if (!lengths.empty()) return ReadContentLength(lengths[0], head);
  if (codings.empty()) return std::nullopt;
  if (!head.http11 || Lower(codings[0]) != "chunked") {
    return Bad("Transfer-Encoding is not \"chunked\"");
  }
  head.chunked = true;
  return std::nullopt;
}

Outcome ReadMeaning(RequestHead& head) {
  const std::vector<std::string_view> connection = FindAll(head, "connection");
  head.keep_alive = !Lists(connection, "close") && (head.http11 || Lists(connection, "keep-alive"));
  const std::string* expect = head.Find("expect");
  if (expect != nullptr && Lower(*expect) != "100-continue") {
    return HttpRefusal{417, "expectation", "expected Expect: 100-continue"};
  }
  head.expects_continue = expect != nullptr && head.http11;
  for (const std::string_view coding : FindAll(head, "content-encoding")) {
    if (coding.empty() || Lower(coding) == "identity") continue;
    return HttpRefusal{415, "content_encoding", "bodies are taken as they are, without coding"};
  }
  return std::nullopt;
}

}  // namespace

const std::string* RequestHead::Find(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return &value;
  }
  return nullptr;
}

bool IsFieldText(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

std::optional<size_t> FindHeadEnd(std::string_view input, size_t from) {
  const size_t end = input.find("\r\n\r\n", from < 3 ? 0 : from - 3);
  if (end == input.npos) return std::nullopt;
  return end + 4;
}

HttpRefusal HeadTooLarge(std::string_view input, int64_t limit) {
  if (input.find('\n') == input.npos) {
    return {414, "target_too_long", "the request line is too long"};
  }
  return {431, "headers_too_large",
          "the headers are larger than " + std::to_string(limit) + " bytes"};
}

std::optional<HttpRefusal> ParseHead(std::string_view text, RequestHead& head) {
  const auto request_line = TakeUntil(text, kLineEnd);
  if (!request_line) return Bad("there is no request line");
  if (Outcome refusal = ReadRequestLine(*request_line, head)) return refusal;
  for (auto line = TakeUntil(text, kLineEnd); line && !line->empty();
       line = TakeUntil(text, kLineEnd)) {
    if (Outcome refusal = ReadField(*line, head)) return refusal;
  }
  if (Outcome refusal = CheckHost(head)) return refusal;
  if (Outcome refusal = ReadFraming(head)) return refusal;
  return ReadMeaning(head);
}

}  // namespace hippodrome
