#include "files/zip.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/error.h"

namespace flambeau::files {

namespace {

constexpr size_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kCentralSize = 46,
                 kLocalSize = 30, kLongestComment = 65535;
constexpr uint32_t kMax32 = 0xffffffff;

// A number of the archive, which is little-endian.
uint64_t number(const unsigned char* p, int bytes) {
  uint64_t n = 0;
  for (int k = bytes; k--;) n = n << 8 | p[k];
  return n;
}
bool begins(const unsigned char* p, const char* mark) {
  return std::memcmp(p, mark, 4) == 0;
}

struct Place {
  uint64_t start, size;  // of the directory, in the file
  uint64_t before;       // bytes that precede the archive
};

Place find_directory(const Source& from) {
  const uint64_t whole = from.size();
  FB_CHECK(whole >= kEndSize, "not a readable zip archive (it has ", whole, " bytes)");
  std::vector<unsigned char> tail(
      static_cast<size_t>(std::min<uint64_t>(whole, kEndSize + kLongestComment)));
  const uint64_t tail_start = whole - tail.size();
  tail.resize(from.read(tail_start, tail.data(), tail.size()));
  FB_CHECK(tail.size() >= kEndSize, "not a readable zip archive (it ends early)");
  // The last mark whose comment ends with the file; else the last mark, for what was added behind.
  size_t at = tail.size();
  for (const bool exact : {true, false}) {
    if (at < tail.size()) break;
    for (size_t k = tail.size() - kEndSize + 1; k-- > 0;) {
      if (!begins(&tail[k], "PK\5\6")) continue;
      if (exact && k + kEndSize + number(&tail[k + 20], 2) != tail.size()) continue;
      at = k;
      break;
    }
  }
  FB_CHECK(at < tail.size(), "not a readable zip archive (it has no directory at its end)");
  const unsigned char* end = &tail[at];
  uint64_t size = number(end + 12, 4), offset = number(end + 16, 4);
  uint64_t directory_end = tail_start + at;
  if (directory_end >= kLocatorSize) {
    unsigned char locator[kLocatorSize];
    const bool there =
        from.read(directory_end - kLocatorSize, locator, kLocatorSize) == kLocatorSize;
    if (there && begins(locator, "PK\6\7") && directory_end >= kLocatorSize + kEnd64Size) {
      unsigned char end64[kEnd64Size];
      const uint64_t where = directory_end - kLocatorSize - kEnd64Size;
      const bool read = from.read(where, end64, kEnd64Size) == kEnd64Size;
      FB_CHECK(read && begins(end64, "PK\6\6"),
               "not a readable zip archive (the end of its directory is not where it should be)");
      size = number(end64 + 40, 8), offset = number(end64 + 48, 8);
      directory_end = where;
    }
  }
  FB_CHECK(size <= directory_end && offset <= directory_end - size,
           "not a readable zip archive (its directory would begin before the file)");
  const uint64_t start = directory_end - size;
  return {start, size, start - offset};
}

// The wide values of an entry's extra fields, for those that are all ones in the header.
void widen(const unsigned char* extra, size_t size, uint64_t* const* wide, int count) {
  while (size >= 4) {
    const auto id = number(extra, 2), length = number(extra + 2, 2);
    FB_CHECK(length <= size - 4, "its zip directory cannot be read (an extra field is cut off)");
    if (id == 1) {
      size_t at = 4;
      for (int k = 0; k < count; ++k) {
        if (*wide[k] != kMax32) continue;
        FB_CHECK(at + 8 <= 4 + length, "its zip directory cannot be read (a size is missing)");
        *wide[k] = number(extra + at, 8);
        at += 8;
      }
    }
    extra += 4 + length;
    size -= 4 + length;
  }
}

struct Taken {
  uint64_t header, end;
  size_t entry;
};

}  // namespace

std::vector<Entry> read_directory(const Source& from, bool leave_out_compressed) {
  const Place place = find_directory(from);
  std::vector<unsigned char> bytes(static_cast<size_t>(place.size));
  FB_CHECK(from.read(place.start, bytes.data(), bytes.size()) == bytes.size(),
           "not a readable zip archive (its directory is cut off)");
  std::vector<Entry> entries;
  std::vector<Taken> taken;
  std::unordered_set<std::string> names;
  for (size_t at = 0; at < bytes.size();) {
    const unsigned char* p = &bytes[at];
    FB_CHECK(bytes.size() - at >= kCentralSize && begins(p, "PK\1\2"),
             "not a readable zip archive (entry ", entries.size(), " of its directory is damaged)");
    const size_t name_size = number(p + 28, 2), extra_size = number(p + 30, 2),
                 comment_size = number(p + 32, 2);
    const size_t total = kCentralSize + name_size + extra_size + comment_size;
    FB_CHECK(total <= bytes.size() - at, "not a readable zip archive (its directory is cut off)");
    uint64_t stored = number(p + 20, 4), size = number(p + 24, 4), header = number(p + 42, 4);
    uint64_t* const wide[] = {&size, &stored, &header};
    widen(p + kCentralSize + name_size, extra_size, wide, 3);
    const auto flags = number(p + 8, 2), method = number(p + 10, 2);
    std::string name(reinterpret_cast<const char*>(p + kCentralSize), name_size);
    FB_CHECK(names.insert(name).second, "two entries are named '", name, "'");
    if (leave_out_compressed && method == 8) {  // the texts of PyTorch's scripts
      at += total;
      continue;
    }
    FB_CHECK(method == 0 && !(flags & 1), "entry '", name, "' is compressed or encrypted");
    FB_CHECK(size == stored, "entry '", name, "' states two different sizes");
    FB_CHECK(header <= place.start - std::min(place.start, place.before), "entry '", name,
             "' has no header where the directory says");
    header += place.before;
    std::vector<unsigned char> local(kLocalSize + name_size);
    const bool there = from.read(header, local.data(), local.size()) == local.size();
    FB_CHECK(there && begins(local.data(), "PK\3\4"), "entry '", name,
             "' has no header where the directory says");
    FB_CHECK(number(&local[26], 2) == name_size &&
                 std::memcmp(&local[kLocalSize], name.data(), name_size) == 0,
             "entry '", name, "' has another name in its own header");
    const uint64_t start = header + kLocalSize + name_size + number(&local[28], 2);
    FB_CHECK(start <= place.start && size <= place.start - start, "entry '", name,
             "' reaches beyond the end of the data");
    taken.push_back({header, start + size, entries.size()});
    entries.push_back({std::move(name), (flags & 0x800) != 0, start, size,
                       static_cast<uint32_t>(number(p + 16, 4))});
    at += total;
  }
  std::sort(taken.begin(), taken.end(),
            [](const Taken& a, const Taken& b) { return a.header < b.header; });
  for (size_t k = 1; k < taken.size(); ++k)
    FB_CHECK(taken[k - 1].end <= taken[k].header, "entries '", entries[taken[k - 1].entry].name,
             "' and '", entries[taken[k].entry].name, "' overlap");
  return entries;
}

}  // namespace flambeau::files
