// The page of tailgate/examples/user_information in Chromium: it shows a user, and the changes of the user as they happen.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import pg from 'pg'
import { chromium } from 'playwright-core'
import { assert, check, done } from './tap.js'

const PAGE = readFileSync(process.env.PAGE)
const SERVICE = `http://127.0.0.1:${process.env.HTTP_PORT}`
const SCRIPT = '<img src=x onerror="window.hit=1">'
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const client = new pg.Client({ user: 'tailgate' })
await client.connect()
for (const text of [
  'CREATE TABLE user_information (id bigint PRIMARY KEY, username text, like_count bigint)',
  "INSERT INTO user_information VALUES (7, 'bob', 1)",
  `CREATE ENDPOINT users GET '/users/:id' (:id bigint) AS SELECT id::text AS "userId", username, like_count AS "likeCount" FROM user_information WHERE id = :id`,
]) await client.query(text)

const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(PAGE)).listen(0, '127.0.0.1')
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run'] })
const page = await browser.newPage()
const wrong = []
page.on('pageerror', (error) => wrong.push(String(error)))
page.setDefaultTimeout(30000)
const value = (field, text) => page.waitForFunction(([id, text]) => document.getElementById(id)?.cells[1].textContent === text, [field, text])

await check('the page shows the user of its address', async () => {
  await page.goto(`http://127.0.0.1:${server.address().port}/?service=${SERVICE}&id=7`)
  await value('username', 'bob')
  await value('likeCount', '1')
})
await check('a change arrives, and its cell is marked', async () => {
  const marked = page.waitForSelector('#likeCount td.changed')
  await client.query('UPDATE user_information SET like_count = 2 WHERE id = 7')
  await value('likeCount', '2')
  await marked
})
await check('values are shown as text', async () => {
  await client.query('UPDATE user_information SET username = $1 WHERE id = 7', [SCRIPT])
  await value('username', SCRIPT)
  assert.equal(await page.evaluate(() => window.hit), undefined)
})
await check('it follows axe’s rules', async () => {
  await page.evaluate(AXE)
  const found = await page.evaluate(() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa'] }))
  assert.deepEqual(found.violations.map((each) => each.id), [])
})
await check('a deleted user, and one who appears', async () => {
  await client.query('DELETE FROM user_information WHERE id = 7')
  await page.waitForFunction(() => document.querySelector('[role=status]').textContent === 'User 7 does not exist.')
  await client.query("INSERT INTO user_information VALUES (7, 'ann', 0)")
  await value('username', 'ann')
})
await check('another user, by keyboard', async () => {
  await client.query("INSERT INTO user_information VALUES (8, 'cyd', 5)")
  await page.focus('input')
  await page.fill('input', '8')
  await page.keyboard.press('Enter')
  await value('username', 'cyd')
  assert.deepEqual(wrong, [])
})

await browser.close()
server.close()
for (const text of ['DROP ENDPOINT users', 'DROP TABLE user_information']) await client.query(text)
await client.end()
done()
