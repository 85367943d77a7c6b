"""Hashes and hash tables for keys that come from a file."""
from libc.stdint cimport int64_t, uint64_t
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector


cdef extern from *:
    """
    #include <cstdint>
    #include <cstring>
    #include <new>
    #include <random>
    #include <string_view>
    #include <vector>

    // Writers of files must not know the salt, or they could write keys that collide.
    static const uint64_t tbm_salt = uint64_t(std::random_device{}()) << 32 | std::random_device{}();

    // Each bit of the hash depends on all bits of the key, because tables use only some of them.
    static inline uint64_t tbm_mixed(uint64_t key) {
        uint64_t value = (key ^ tbm_salt) * 0x9E3779B97F4A7C15u;
        value = (value ^ (value >> 32)) * 0x9E3779B97F4A7C15u;
        return value ^ (value >> 32);
    }

    // For std::unordered_map: std::hash of an integer is the integer, so a file could fill one bucket.
    struct tbm_hash {
        size_t operator()(uint64_t key) const { return tbm_mixed(key); }
        size_t operator()(std::string_view text) const {
            uint64_t hash = text.size(), word = 0;
            size_t at = 0;
            for (; at + 8 <= text.size(); at += 8) {
                std::memcpy(&word, text.data() + at, 8);
                hash = tbm_mixed(hash ^ word);
            }
            word = 0;
            if (at < text.size()) std::memcpy(&word, text.data() + at, text.size() - at);
            return tbm_mixed(hash ^ word);
        }
    };

    // Numbers of distinct keys, from 0 in order of first appearance: linear probing, at most half full.
    struct tbm_numbering {
        std::vector<int64_t> keys;                                  // by number
        std::vector<uint32_t> slots = std::vector<uint32_t>(16);    // 1 + number of a key; 0: free

        size_t number(int64_t key) {
            size_t slot = tbm_mixed(key) & (slots.size() - 1);
            while (slots[slot]) {
                if (keys[slots[slot] - 1] == key) return slots[slot] - 1;
                slot = (slot + 1) & (slots.size() - 1);
            }
            if (keys.size() == UINT32_MAX) throw std::bad_alloc();
            keys.push_back(key);
            slots[slot] = uint32_t(keys.size());
            if (keys.size() * 2 > slots.size()) grow();
            return keys.size() - 1;
        }

        void grow() {
            slots.assign(slots.size() * 4, 0);
            for (size_t i = 0; i < keys.size(); i++) {
                size_t slot = tbm_mixed(keys[i]) & (slots.size() - 1);
                while (slots[slot]) slot = (slot + 1) & (slots.size() - 1);
                slots[slot] = uint32_t(i + 1);
            }
        }
    };
    """
    size_t hash_of_text "tbm_hash()"(string_view text) nogil

    cdef cppclass Hash "tbm_hash":
        pass

    cdef cppclass Numbering "tbm_numbering":
        vector[int64_t] keys
        size_t number(int64_t key) except + nogil
