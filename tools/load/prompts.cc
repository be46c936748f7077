#include "tools/load/prompts.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "engine/base/status.h"
#include "tools/command_line/text_file.h"

namespace hippodrome {
namespace {

using nlohmann::json;

constexpr int64_t kMostNewTokens = 1 << 20;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // spreads neighbouring numbers over all seeds

int64_t Draw(std::mt19937_64& random, const LengthRange& range) {
  return range.least +
         static_cast<int64_t>(random() % static_cast<uint64_t>(range.most - range.least + 1));
}

// Two syllables: text that any tokenizer takes.
std::string DrawWord(std::mt19937_64& random) {
  constexpr std::string_view kConsonants = "bdfgklmnprst";
  constexpr std::string_view kVowels = "aeiou";
  std::string word;
  for (int i = 0; i < 2; ++i) {
    word += kConsonants[random() % kConsonants.size()];
    word += kVowels[random() % kVowels.size()];
  }
  return word;
}

absl::StatusOr<LoadRequest> ReadPrompt(const json& prompt) {
  LoadRequest request;
  if (prompt.is_string() && !prompt.get_ref<const std::string&>().empty()) {
    request.text = prompt.get<std::string>();
    return request;
  }
  const absl::Status error = InvalidArgument("'prompt' must be a text or token ids, not empty");
  if (!prompt.is_array() || prompt.empty()) return error;
  for (const json& id : prompt) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<int32_t>::max()) {
      return error;
    }
    request.token_ids.push_back(id.get<int32_t>());
  }
  return request;
}

absl::StatusOr<LoadRequest> ReadObject(std::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("prompt")) {
    return InvalidArgument(R"(expected {"prompt": TEXT or [ID, ...], "max_tokens": N})");
  }
  HIPPODROME_ASSIGN_OR_RETURN(LoadRequest request, ReadPrompt(object["prompt"]));
  for (const auto& [name, value] : object.items()) {
    if (name == "prompt") continue;
    if (name != "max_tokens") return InvalidArgument("unknown field '" + name + "'");
    if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 ||
        value.get<uint64_t>() > kMostNewTokens) {
      return InvalidArgument("'max_tokens' must be in [1, " + std::to_string(kMostNewTokens) + "]");
    }
    request.max_tokens = value.get<int64_t>();
  }
  return request;
}

}  // namespace

absl::StatusOr<LengthRange> ParseLengthRange(const std::string& text, int64_t limit) {
  const absl::Status error = InvalidArgument("'" + text + "', expected N or LEAST-MOST in [1, " +
                                             std::to_string(limit) + "]");
  const char* end = text.data() + text.size();
  LengthRange range;
  auto [rest, code] = std::from_chars(text.data(), end, range.least);
  if (code != std::errc()) return error;
  range.most = range.least;
  if (rest != end && *rest == '-') {
    const auto second = std::from_chars(rest + 1, end, range.most);
    if (second.ec != std::errc()) return error;
    rest = second.ptr;
  }
  if (rest != end || range.least < 1 || range.most < range.least || range.most > limit) {
    return error;
  }
  return range;
}

absl::StatusOr<Prompts> Prompts::Read(const std::string& path, const PromptOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  Prompts prompts(options);
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (!path.ends_with(".jsonl")) {
      prompts.file_.push_back({.text = std::string(line)});
      continue;
    }
    absl::StatusOr<LoadRequest> request = ReadObject(line);
    if (!request.ok()) {
      return InvalidArgument(path + ", line " + std::to_string(number) + ": " +
                             Message(request.status()));
    }
    if (options.task == LoadTask::kPredict && request->text.empty()) {
      return InvalidArgument(path + ", line " + std::to_string(number) + ": predict takes texts");
    }
    prompts.file_.push_back(*std::move(request));
  }
  if (prompts.file_.empty()) return InvalidArgument(path + ": has no prompt");
  return prompts;
}

LoadRequest Prompts::Make(int64_t index) const {
  std::mt19937_64 random(options_.seed + static_cast<uint64_t>(index + 1) * kGolden);
  LoadRequest request;
  if (!file_.empty()) {
    request = file_[index % file_.size()];
  } else {
    const int64_t length = Draw(random, options_.prompt);
    for (int64_t i = 0; i < length; ++i) {
      if (options_.task == LoadTask::kPredict) {
        request.text += (i == 0 ? "" : " ") + DrawWord(random);
      } else {
        request.token_ids.push_back(static_cast<int32_t>(random() % kDrawnTokens));
      }
    }
  }
  if (request.max_tokens == 0) request.max_tokens = Draw(random, options_.max_tokens);
  return request;
}

}  // namespace hippodrome
