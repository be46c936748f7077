#include "tools/batch/batch_job.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/durable_files.h"
#include "engine/base/one_line.h"
#include "engine/base/read_file.h"
#include "engine/base/status.h"
#include "engine/base/xxh3.h"

namespace hippodrome {
namespace {

using nlohmann::json;

constexpr size_t kMostJobBytes = size_t{1} << 20;

json ParseJobFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMostJobBytes);
  return text.ok() ? json::parse(*text, nullptr, false) : json();
}

// "task: \"classify\" then, \"embed\" now; ..."
std::string Differences(const json& before, const json& now) {
  std::string text;
  for (const auto& [name, value] : now.items()) {
    const json old = before.is_object() ? before.value(name, json()) : json();
    if (old == value) continue;
    text += fmt::format("{}{}: {} then, {} now", text.empty() ? "" : "; ", name,
                        OneLine(old.dump()), OneLine(value.dump()));
  }
  return text.empty() ? "it says more than this program knows" : text;
}

json ToJson(const BatchTotals& totals) {
  return {{"lines", totals.counts.lines},
          {"errors", totals.counts.errors},
          {"bytes", totals.bytes},
          {"xxh3", totals.checksum}};
}

std::optional<BatchTotals> FromJson(const json& totals) {
  try {
    return BatchTotals{.counts = {totals.at("lines"), totals.at("errors")},
                       .bytes = totals.at("bytes"),
                       .checksum = totals.at("xxh3")};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

std::string PartPath(const std::string& output, const BatchShare& share) {
  if (share.count == 1) return output;
  return fmt::format("{}.part-{:05}-of-{:05}", output, share.index, share.count);
}

JobFile::JobFile(const std::string& part, json description)
    : part_(part), path_(part + ".job"), description_(std::move(description)) {}

absl::StatusOr<bool> JobFile::Begin(int64_t bytes) const {
  if (bytes == 0) {
    HIPPODROME_RETURN_IF_ERROR(Write(nullptr));
    return false;
  }
  const json found = ParseJobFile(path_);
  if (!found.is_object() || !found.contains("job")) {
    return FailedPrecondition(part_ + " is there, but no " + path_ +
                              " that says of which job it is: remove it, or write elsewhere");
  }
  if (found["job"] != description_) {
    return FailedPrecondition(part_ + " is of another job (" +
                              Differences(found["job"], description_) +
                              "): remove it, or write elsewhere");
  }
  const std::optional<BatchTotals> totals = FromJson(found.value("totals", json()));
  if (!totals) return false;
  if (totals->bytes == bytes) return true;
  return FailedPrecondition(
      fmt::format("{} has {} bytes, but had {} when it was complete: remove "
                  "it to begin anew",
                  part_, bytes, totals->bytes));
}

absl::Status JobFile::Write(const json& totals) const {
  const json job = {{"job", description_}, {"totals", totals}};
  return WriteFileDurably(path_, job.dump(1) + "\n");
}

absl::Status JobFile::Complete(const BatchTotals& totals) const { return Write(ToJson(totals)); }

std::optional<BatchTotals> JobFile::totals() const {
  const json found = ParseJobFile(path_);
  if (!found.is_object() || found.value("job", json()) != description_) return std::nullopt;
  return FromJson(found.value("totals", json()));
}

absl::StatusOr<std::string> ChecksumFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) return Internal(path + ": it cannot be read");
  Xxh3 checksum;
  std::vector<char> buffer(size_t{1} << 20);
  while (const size_t read = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    checksum.Add(std::string_view(buffer.data(), read));
  }
  if (std::ferror(file.get()) != 0) return Internal(path + ": it cannot be read");
  return checksum.Hex();
}

absl::StatusOr<bool> WriteManifest(const std::string& output, int64_t shares,
                                   const json& description) {
  json parts = json::array();
  BatchCounts all;
  for (int64_t i = 0; i < shares; ++i) {
    const std::string part = PartPath(output, {i, shares});
    const std::optional<BatchTotals> totals = JobFile(part, description).totals();
    if (!totals) return false;
    all.lines += totals->counts.lines;
    all.errors += totals->counts.errors;
    parts.push_back(ToJson(*totals));
    parts.back()["path"] = FileName(part);
  }
  const json manifest = {
      {"job", description}, {"parts", parts}, {"lines", all.lines}, {"errors", all.errors}};
  HIPPODROME_RETURN_IF_ERROR(WriteFileDurably(output + ".manifest.json", manifest.dump(1) + "\n"));
  return true;
}

}  // namespace hippodrome
