-- SPDX-License-Identifier: BSD-2-Clause

-- Looks up, adds and removes keys of the zones of ngx_http_bloom_module.
-- docs/lua.md describes the functions.
--
--     local bloom = require "resty.bloom"
--
--     local present, reason = bloom.test("ids", ngx.var.arg_id)
--     if present == false then
--         return ngx.exit(404)
--     end

local ffi = require "ffi"

local C = ffi.C
local ffi_string = ffi.string
local next = next
local pcall = pcall
local type = type


-- The types of src/http/ngx_http_bloom_ffi.h.  They stay defined if this file
-- is loaded again in the same VM.

if not pcall(ffi.typeof, "ngx_http_bloom_ffi_key_t") then
    ffi.cdef[[
        typedef struct {
            const char    *data;
            size_t         len;
        } ngx_http_bloom_ffi_key_t;

        int ngx_http_bloom_ffi_version(void);
        int ngx_http_bloom_ffi_test(const char *name, size_t name_len,
            const char *key, size_t len);
        int ngx_http_bloom_ffi_test_many(const char *name, size_t name_len,
            const ngx_http_bloom_ffi_key_t *keys, size_t n,
            unsigned char *answers);
        int ngx_http_bloom_ffi_add(const char *name, size_t name_len,
            const char *key, size_t len);
        int ngx_http_bloom_ffi_remove(const char *name, size_t name_len,
            const char *key, size_t len);
        const char *ngx_http_bloom_ffi_reason(void);
    ]]
end


-- The version of the C interface that this file needs: the same major number,
-- and at least this minor number.

local MAJOR = 1
local MINOR = 0


local function check_version()
    local loaded, version = pcall(function ()
        return C.ngx_http_bloom_ffi_version()
    end)

    if not loaded then
        error("resty.bloom: nginx has not loaded ngx_http_bloom_module, or a "
              .. "version of it without an interface for Lua: write "
              .. "\"load_module modules/ngx_http_bloom_module.so;\" at the "
              .. "top of nginx.conf, and restart nginx", 0)
    end

    local major = math.floor(version / 1000)
    local minor = version % 1000

    if major ~= MAJOR or minor < MINOR then
        error("resty.bloom: this file needs version " .. MAJOR .. "." .. MINOR
              .. " of the interface of ngx_http_bloom_module, and nginx has "
              .. "loaded version " .. major .. "." .. minor .. ": install "
              .. "bloom.lua and the module of the same release, and restart "
              .. "nginx", 0)
    end
end

check_version()


local ABSENT = 0
local PRESENT = 1
local ADDED = 5
local REMOVED = 6

-- The first word of a reason, by result of a call.

local words = {
    [2] = "unknown",
    [3] = "invalid",
    [4] = "empty",
    [-1] = "invalid",
    [-2] = "not here",
    [-3] = "no zone",
    [-4] = "never",
    [-5] = "not now",
    [-6] = "no room",
    [-7] = "not saved",
}

local answers = {
    [ABSENT] = "absent",
    [PRESENT] = "present",
    [2] = "unknown",
    [3] = "invalid",
    [4] = "empty",
}

-- Keys are looked up in groups.  While the buffers are in use, nothing yields,
-- and no code of the caller runs, such as __index.

local GROUP = 256
local group_keys = ffi.new("ngx_http_bloom_ffi_key_t[?]", GROUP)
local group_answers = ffi.new("unsigned char[?]", GROUP)


local _M = { _VERSION = "1.0" }


local function reason_of(rc)
    return (words[rc] or "failed") .. ": "
           .. ffi_string(C.ngx_http_bloom_ffi_reason())
end


local function not_a_name(name)
    return nil, "no zone: the name of a zone must be a string, not "
                .. type(name)
end


local function not_a_key(key)
    if key == nil then
        return nil, "empty: there is no key"
    end

    return nil, "invalid: a key must be a string, not " .. type(key)
end


-- Returns true if the key may be in the zone, false if it definitely is not, or
-- nil and a reason.

function _M.test(name, key)
    if type(name) ~= "string" then
        return not_a_name(name)
    end

    if type(key) ~= "string" then
        return not_a_key(key)
    end

    local rc = C.ngx_http_bloom_ffi_test(name, #name, key, #key)

    if rc == ABSENT then
        return false
    end

    if rc == PRESENT then
        return true
    end

    return nil, reason_of(rc)
end


-- Returns a table with an answer for each element of the array `keys`:
-- "present", "absent", "unknown", "invalid" or "empty"; or nil and a reason.

function _M.test_many(name, keys)
    if type(keys) ~= "table" then
        return nil, "invalid: the keys must be an array, not " .. type(keys)
    end

    if keys[1] == nil and next(keys) ~= nil then
        return nil, "invalid: the keys must be an array, and the table has no "
                    .. "element 1"
    end

    local n = #keys

    if n == 0 and keys[1] ~= nil then
        return nil, "invalid: the keys must be an array, and the length of the "
                    .. "table, whose elements are computed, is 0: copy them to "
                    .. "another table"
    end

    if type(name) ~= "string" then
        return not_a_name(name)
    end

    local result = {}
    local held = {}
    local first = 1

    repeat
        local last = first + GROUP - 1

        if last > n then
            last = n
        end

        -- __index may compute a new string, which nothing else holds, and may
        -- call this function

        for i = first, last do
            held[i - first] = keys[i]
        end

        for i = 0, last - first do
            local key = held[i]
            local slot = group_keys[i]

            if type(key) == "string" then
                slot.data = key
                slot.len = #key

            else
                slot.data = nil
                slot.len = 0
            end
        end

        local rc = C.ngx_http_bloom_ffi_test_many(name, #name, group_keys,
                                                  last - first + 1,
                                                  group_answers)
        if rc ~= 0 then
            return nil, reason_of(rc)
        end

        for i = 0, last - first do
            local key = held[i]

            if key == nil or type(key) == "string" then
                result[first + i] = answers[group_answers[i]]

            else
                result[first + i] = "invalid"
            end
        end

        first = last + 1
    until first > n

    return result
end


-- Adds or removes a key.

local function change(name, key, call, done, done_word, before, before_word)
    if type(name) ~= "string" then
        return not_a_name(name)
    end

    if type(key) ~= "string" then
        return not_a_key(key)
    end

    local rc = call(name, #name, key, #key)

    if rc == done then
        return true, done_word
    end

    if rc == before then
        return true, before_word
    end

    return nil, reason_of(rc)
end


-- Adds a key.  Returns true and "added" or "present", if it was there already;
-- or nil and a reason.

function _M.add(name, key)
    return change(name, key, C.ngx_http_bloom_ffi_add, ADDED, "added",
                  PRESENT, "present")
end


-- Removes a key.  Returns true and "removed" or "absent", if it was absent
-- already; or nil and a reason.

function _M.remove(name, key)
    return change(name, key, C.ngx_http_bloom_ffi_remove, REMOVED, "removed",
                  ABSENT, "absent")
end


return _M
