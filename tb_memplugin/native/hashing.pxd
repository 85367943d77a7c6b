"""Hashes for tables of keys that come from a file."""
from libc.stdint cimport uint64_t


cdef inline uint64_t mixed(uint64_t key, uint64_t salt) noexcept nogil:
    """Return a hash whose bits each depend on all bits of the key, because tables use only some of them.

    Writers of files must not know the salt, or they could write keys that collide.
    """
    cdef uint64_t value = (key ^ salt) * <uint64_t>0x9E3779B97F4A7C15
    value = (value ^ (value >> 32)) * <uint64_t>0x9E3779B97F4A7C15
    return value ^ (value >> 32)


cdef extern from *:
    """
    #include <cstdint>
    #include <cstring>
    #include <random>
    #include <string_view>

    // For std::unordered_map: std::hash of an integer is the integer, so a file could fill one bucket.
    struct tbm_hash {
        static uint64_t mixed(uint64_t key) {
            static const uint64_t salt = uint64_t(std::random_device{}()) << 32 | std::random_device{}();
            uint64_t value = (key ^ salt) * 0x9E3779B97F4A7C15u;
            value = (value ^ (value >> 32)) * 0x9E3779B97F4A7C15u;
            return value ^ (value >> 32);
        }
        size_t operator()(uint64_t key) const { return mixed(key); }
        size_t operator()(std::string_view text) const {
            uint64_t hash = text.size(), word = 0;
            size_t at = 0;
            for (; at + 8 <= text.size(); at += 8) {
                std::memcpy(&word, text.data() + at, 8);
                hash = mixed(hash ^ word);
            }
            word = 0;
            if (at < text.size()) std::memcpy(&word, text.data() + at, text.size() - at);
            return mixed(hash ^ word);
        }
    };
    """
    cdef cppclass Hash "tbm_hash":
        pass
